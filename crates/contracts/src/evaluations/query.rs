//! Reads query parameters, with every error under the name of its parameter.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use crate::evaluation::{Confidence, Score};
use crate::json::ValidationErrors;
use crate::named_enum::Named;
use crate::time::Timestamp;
use crate::validation::{BodyError, FieldError, MAX_NAME_CHARS, MAX_REPORTED_NAME_CHARS};

/// Most values of one parameter.
pub const MAX_VALUES: usize = 50;

/// The parameters of a query, read by name. Those that were not read before [`Self::finish`] are reported as unknown.
#[derive(Debug)]
pub struct QueryReader {
    values: BTreeMap<String, Vec<String>>,
    errors: ValidationErrors,
}

impl QueryReader {
    /// A reader of decoded pairs, such as those of `application/x-www-form-urlencoded`.
    pub fn new<N: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in pairs {
            values.entry(name.into()).or_default().push(value.into());
        }
        Self { values, errors: ValidationErrors::default() }
    }

    /// `value`, unless there was an error; parameters that were not read are errors.
    ///
    /// # Errors
    /// All errors, at most [`crate::validation::MAX_REPORTED_ERRORS`].
    pub fn finish<T>(mut self, value: T) -> Result<T, Vec<FieldError>> {
        for name in self.values.keys() {
            let name: String = name.chars().take(MAX_REPORTED_NAME_CHARS).collect();
            self.errors.add(name, "is not a parameter of this operation");
        }
        self.errors.finish(Some(value)).map_err(|error| match error {
            BodyError::Invalid(errors) => errors,
            BodyError::Malformed(detail) => vec![FieldError { pointer: String::new(), detail }],
        })
    }

    /// Adds an error of a parameter.
    pub fn add_error(&mut self, name: &str, detail: impl Into<String>) {
        self.errors.add(name, detail);
    }

    /// The value of a parameter that may be given once.
    pub fn single(&mut self, name: &str) -> Option<String> {
        let mut values = self.values.remove(name)?;
        if values.len() > 1 {
            self.add_error(name, "must be given once");
        }
        values.pop()
    }

    /// A parameter that may be given once, parsed; `detail` is its error when `parse` returns `None`.
    pub fn parsed<T>(&mut self, name: &str, detail: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.single(name)?;
        let value = parse(&text);
        if value.is_none() {
            self.add_error(name, detail);
        }
        value
    }

    /// Epoch milliseconds.
    pub fn moment(&mut self, name: &str) -> Option<Timestamp> {
        self.parsed(name, "must be Unix epoch milliseconds from 0 to 253402300799999", |text| {
            Timestamp::from_millis(parse_digits(text)?).ok()
        })
    }

    /// A value of a closed list, given at most once.
    pub fn one_named<T: Named>(&mut self, name: &str) -> Option<T> {
        let detail = format!("must be one of: {}", T::names());
        self.parsed(name, &detail, T::from_name)
    }

    /// Values of a closed list.
    pub fn named<T: Named>(&mut self, name: &str) -> Vec<T> {
        self.parse_each(name, |text| {
            T::from_name(text).ok_or_else(|| format!("must be one of: {}", T::names()))
        })
    }

    /// Values of any type that is parsed from text.
    pub fn parsed_list<T: FromStr<Err = String> + Ord>(&mut self, name: &str) -> Vec<T> {
        self.parse_each(name, T::from_str)
    }

    /// Ids and names.
    pub fn texts(&mut self, name: &str) -> Vec<String> {
        self.parse_each(name, |text| check_text(text).map(|()| text.to_owned()))
    }

    /// Texts with at least one word.
    pub fn texts_with_words(&mut self, name: &str) -> Vec<String> {
        self.parse_each(name, text_with_words)
    }

    /// A text with at least one word, given at most once.
    pub fn one_text_with_words(&mut self, name: &str) -> Option<String> {
        let text = self.single(name)?;
        text_with_words(&text).map_err(|detail| self.add_error(name, detail)).ok()
    }

    /// Language codes.
    pub fn languages(&mut self, name: &str) -> Vec<String> {
        self.parse_each(name, |text| {
            let is_code = (2..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_lowercase());
            if is_code {
                Ok(text.to_owned())
            } else {
                Err("must be a code of ISO 639-1, or `und`".to_owned())
            }
        })
    }

    /// A score: 1.0 to 5.0 in tenths.
    pub fn score(&mut self, name: &str) -> Option<Score> {
        let detail = "must be a number from 1.0 to 5.0 with at most one decimal";
        self.parsed(name, detail, |text| Score::from_tenths(parse_decimal(text, 1)?))
    }

    /// A confidence: 0 to 1 in hundredths.
    pub fn confidence(&mut self, name: &str) -> Option<Confidence> {
        let detail = "must be a number from 0 to 1 with at most two decimals";
        self.parsed(name, detail, |text| Confidence::from_hundredths(parse_decimal(text, 2)?))
    }

    /// The values of a parameter, sorted, each once.
    fn parse_each<T: Ord>(&mut self, name: &str, parse: impl Fn(&str) -> Result<T, String>) -> Vec<T> {
        let texts = self.values.remove(name).unwrap_or_default();
        if texts.len() > MAX_VALUES {
            self.add_error(name, format!("must not be given more than {MAX_VALUES} times"));
            return Vec::new();
        }
        let mut values = BTreeSet::new();
        for text in texts {
            match parse(&text) {
                Ok(value) => {
                    values.insert(value);
                }
                Err(detail) => self.add_error(name, detail),
            }
        }
        values.into_iter().collect()
    }
}

/// The words of a text as filters compare them: runs of letters and digits, in lower case.
pub fn words_of(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

fn check_text(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("must not be empty: leave it out for no filter".to_owned());
    }
    if text.contains('\0') {
        return Err("must not contain the NUL character".to_owned());
    }
    if text.chars().count() > MAX_NAME_CHARS {
        return Err(format!("must not be longer than {MAX_NAME_CHARS} characters"));
    }
    Ok(())
}

/// The text with single spaces, if it has a word.
fn text_with_words(text: &str) -> Result<String, String> {
    check_text(text)?;
    if words_of(text).next().is_none() {
        return Err("must hold a letter or a digit".to_owned());
    }
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The number of a text that has only digits; `parse` alone would also accept a sign.
pub(super) fn parse_digits(text: &str) -> Option<i64> {
    let has_only_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if has_only_digits { text.parse().ok() } else { None }
}

/// A decimal number without sign and exponent, in units of `10^-places`.
fn parse_decimal(text: &str, places: usize) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    // Longer texts are refused: no score or confidence needs as many digits.
    if whole.is_empty() || fraction.is_empty() || whole.len() > 3 || fraction.len() > 6 {
        return None;
    }
    let significant = fraction.trim_end_matches('0');
    if significant.len() > places {
        return None;
    }
    let padded = format!("{significant:0<places$}");
    parse_digits(&format!("{whole}{padded}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_has_a_bounded_number_of_places() {
        let cases =
            [("4", Some(40)), ("4.5", Some(45)), ("4.50", Some(45)), ("04.5", Some(45)), ("4.55", None)];
        let refused = ["", ".", ".5", "4.", "-4", "+4", "4e0", "4,5", "NaN", "٤", "99999999999999999999"];
        for (text, tenths) in cases.into_iter().chain(refused.map(|text| (text, None))) {
            assert_eq!(parse_decimal(text, 1), tenths, "{text:?}");
        }
    }

    #[test]
    fn words_are_runs_of_letters_and_digits_in_lower_case() {
        let words = |text| words_of(text).collect::<Vec<_>>();
        assert_eq!(words("Größe 42: can't RETURN!"), ["größe", "42", "can", "t", "return"]);
        assert_eq!(words("«…» — !"), Vec::<String>::new());
    }
}
