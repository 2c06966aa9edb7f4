//! Validation of request bodies that reports all errors in one response, each with its location.
//!
//! A derived deserializer stops at the first error; a developer who integrates a helpdesk wants to see all of them. So a
//! body is parsed to a JSON tree, which is then read field by field.

mod fault;
mod tree;

use std::borrow::Cow;
use std::cell::Cell;

use serde::de::DeserializeSeed;

pub use self::fault::JsonFault;
use self::tree::TreeSeed;
pub use self::tree::{Fields, Tree};
use crate::named_enum::Named;
use crate::validation::{
    BodyError, FieldError, MAX_NAME_CHARS, MAX_REPORTED_ERRORS, MAX_REPORTED_NAME_CHARS,
};

/// Collects validation errors while a body is read.
#[derive(Debug, Default)]
pub struct ValidationErrors(Vec<FieldError>);

impl ValidationErrors {
    /// Adds an error at `pointer`; errors beyond [`MAX_REPORTED_ERRORS`] are dropped.
    pub fn add(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        if self.0.len() < MAX_REPORTED_ERRORS {
            self.0.push(FieldError { pointer: pointer.into(), detail: detail.into() });
        }
    }

    /// Whether [`MAX_REPORTED_ERRORS`] is reached, so that reading can stop.
    pub fn is_full(&self) -> bool {
        self.0.len() >= MAX_REPORTED_ERRORS
    }

    /// `value` if there are no errors, else the errors. It is `None` only after an error.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, BodyError> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(BodyError::Invalid(self.0)),
        }
    }
}

/// Reads the fields of one JSON object.
pub struct ObjectReader<'f, 'b> {
    fields: Fields<'b>,
    pointer: String,
    errors: &'f mut ValidationErrors,
}

/// Maximum number of values of a body, in fields that are read. A value takes up to 224 bytes (an object with one field), so they need
/// 3.5 MiB at most. An import of 50 messages with every field has 560.
pub const MAX_BODY_VALUES: usize = 16_384;

/// Parses a whole body into a JSON tree of the fields with these names; the values of other fields are skipped.
///
/// # Errors
/// [`BodyError::Malformed`] for anything that is not one JSON text: empty, truncated, nested too deeply,
/// not UTF-8, lone surrogates. [`BodyError::Invalid`] with more than [`MAX_BODY_VALUES`] values.
pub fn parse_tree<'b>(body: &'b [u8], fields: &[&'static str]) -> Result<Tree<'b>, BodyError> {
    parse(body, Some(fields))
}

/// [`parse_tree`] of all fields, for a body whose unknown fields are reported.
///
/// # Errors
/// As [`parse_tree`]; the values of unknown fields count, too.
pub fn parse_whole_tree(body: &[u8]) -> Result<Tree<'_>, BodyError> {
    parse(body, None)
}

fn parse<'b>(body: &'b [u8], fields: Option<&[&'static str]>) -> Result<Tree<'b>, BodyError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(BodyError::Malformed("the body is empty: send a JSON object".to_owned()));
    }
    let budget = Cell::new(MAX_BODY_VALUES);
    let mut parser = serde_json::Deserializer::from_slice(body);
    let parsed = TreeSeed { fields, budget: &budget }.deserialize(&mut parser);
    match parsed.and_then(|tree| parser.end().map(|()| tree)) {
        Ok(tree) => Ok(tree),
        Err(_) if budget.get() == 0 => {
            let detail = format!("must not hold more than {MAX_BODY_VALUES} values");
            Err(BodyError::Invalid(vec![FieldError { pointer: String::new(), detail }]))
        }
        Err(error) => Err(BodyError::Malformed(error.to_string())),
    }
}

impl<'f, 'b> ObjectReader<'f, 'b> {
    /// A reader of `value`, which must be an object; `pointer` is its location in the body.
    pub fn new(
        value: Tree<'b>,
        pointer: impl Into<String>,
        errors: &'f mut ValidationErrors,
    ) -> Option<Self> {
        let pointer = pointer.into();
        match value {
            Tree::Object(fields) => Some(Self { fields, pointer, errors }),
            other => {
                errors.add(pointer, format!("must be an object, not {}", other.kind()));
                None
            }
        }
    }

    /// The collected errors.
    pub fn errors(&mut self) -> &mut ValidationErrors {
        self.errors
    }

    /// The JSON Pointer of one of this object's fields.
    pub fn pointer_to(&self, field: &str) -> String {
        format!("{}/{field}", self.pointer)
    }

    /// Adds an error of one field.
    pub fn add_error(&mut self, field: &str, detail: impl Into<String>) {
        let pointer = self.pointer_to(field);
        self.errors.add(pointer, detail);
    }

    /// Takes a field of any type. `null` counts as absent: connectors send it for fields without a value.
    pub fn take(&mut self, field: &str) -> Option<Tree<'b>> {
        self.fields.take(field).filter(|value| *value != Tree::Null)
    }

    /// Adds an error for each field that was not taken, is not `null` and not one of `known`.
    pub fn refuse_unknown(&mut self, known: &[&str], detail: &str) {
        let unknown = self.fields.names().filter(|name| !known.contains(name)).take(MAX_REPORTED_ERRORS);
        let truncated: Vec<String> =
            unknown.map(|name| name.chars().take(MAX_REPORTED_NAME_CHARS).collect()).collect();
        for name in truncated {
            self.add_error(&name.replace('~', "~0").replace('/', "~1"), detail);
        }
    }

    /// Takes a required field.
    pub fn required(&mut self, field: &str) -> Option<Tree<'b>> {
        let value = self.take(field);
        if value.is_none() {
            self.add_error(field, "is required");
        }
        value
    }

    /// A required string of at least one character, without a maximum length.
    pub fn required_text(&mut self, field: &str) -> Option<String> {
        let value = self.required(field)?;
        self.non_empty_text_of(field, value)
    }

    /// A required id or name: 1 to [`MAX_NAME_CHARS`] characters.
    pub fn required_short_text(&mut self, field: &str) -> Option<String> {
        let text = self.required_text(field)?;
        self.check_length(field, text)
    }

    /// An optional id or name: when present, 1 to [`MAX_NAME_CHARS`] characters.
    pub fn optional_short_text(&mut self, field: &str) -> Option<String> {
        let value = self.take(field)?;
        self.short_text_of(field, value)
    }

    /// Checks a value from [`Self::take`] that must be an id or name.
    pub fn short_text_of(&mut self, field: &str, value: Tree<'b>) -> Option<String> {
        let text = self.non_empty_text_of(field, value)?;
        self.check_length(field, text)
    }

    /// An optional string of any length, possibly empty.
    pub fn optional_free_text(&mut self, field: &str) -> Option<String> {
        let value = self.take(field)?;
        self.text_of(field, value).map(Cow::into_owned)
    }

    /// An optional value of a closed list.
    pub fn optional_choice<T: Named>(&mut self, field: &str) -> Option<T> {
        let value = self.take(field)?;
        self.choice(field, value)
    }

    /// A required value of a closed list.
    pub fn required_choice<T: Named>(&mut self, field: &str) -> Option<T> {
        let value = self.required(field)?;
        self.choice(field, value)
    }

    /// Checks a value from [`Self::take`] that must be one of a closed list.
    pub fn choice<T: Named>(&mut self, field: &str, value: Tree<'b>) -> Option<T> {
        let text = self.text_of(field, value)?;
        let named = T::from_name(&text);
        if named.is_none() {
            self.add_error(field, format!("must be one of: {}", T::names()));
        }
        named
    }

    /// An integer between `min` and `max`. A number without a fractional part is an integer in any notation (JSON Schema
    /// 2020-12, section 6.1.1).
    pub fn integer(&mut self, field: &str, value: &Tree<'_>, min: i64, max: i64) -> Option<i64> {
        let Tree::Number(number) = value else {
            self.add_error(field, format!("must be an integer, not {}", value.kind()));
            return None;
        };
        let integer = number.as_i64().or_else(|| {
            let float = number.as_f64()?;
            // Below 2^53 an `f64` holds every integer exactly.
            let is_exact = float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0;
            is_exact.then_some(float as i64)
        });
        let in_range = integer.filter(|integer| (min..=max).contains(integer));
        if in_range.is_none() {
            self.add_error(field, format!("must be an integer from {min} to {max}"));
        }
        in_range
    }

    /// Checks a value from [`Self::take`] that must be a string of at least one character, without a maximum length.
    pub fn non_empty_text_of(&mut self, field: &str, value: Tree<'b>) -> Option<String> {
        let text = self.text_of(field, value)?;
        if text.is_empty() {
            self.add_error(field, "must not be empty");
            return None;
        }
        Some(text.into_owned())
    }

    fn text_of(&mut self, field: &str, value: Tree<'b>) -> Option<Cow<'b, str>> {
        let text = match value {
            Tree::String(text) => text,
            other => {
                self.add_error(field, format!("must be a string, not {}", other.kind()));
                return None;
            }
        };
        // PostgreSQL cannot store NUL in text.
        if text.contains('\0') {
            self.add_error(field, "must not contain the NUL character (\\u0000)");
            return None;
        }
        Some(text)
    }

    fn check_length(&mut self, field: &str, text: String) -> Option<String> {
        // A string has at least as many bytes as characters, so most names need no counting.
        if text.len() > MAX_NAME_CHARS && text.chars().count() > MAX_NAME_CHARS {
            self.add_error(field, format!("must not be longer than {MAX_NAME_CHARS} characters"));
            return None;
        }
        Some(text)
    }
}
