//! Language detection: by script, else by function words, else by `whichlang`.
//!
//! Measured on the short texts of `tests/samples/languages.tsv`: 180 in the eight supported languages, 8 in no language,
//! 22 in others. `whichlang` (a linear model over n-grams) detects 178 of the 180, but also assigns a language to each of
//! the other 30 ("iPhone 14 Pro", Polish). Function words alone detect 157, leave 22 undetermined, are wrong on one of
//! the 180 and on 4 of the 30, and cost almost nothing. Combined, 171 are right, 8 undetermined, 1 wrong, and 26 of the 30
//! undetermined: function words decide if there are enough of them, as in nearly every conversation; else `whichlang`
//! decides if a function word agrees. Texts that are too short or mixed stay undetermined.

mod function_words;

use std::borrow::Cow;

pub(crate) use self::function_words::FunctionWords;
use self::function_words::{Tally, WORD_WEIGHT};
use crate::transcript::{Item, Role};

/// Minimum weight of function words that decide alone.
const MIN_WEIGHT_TO_DECIDE: u32 = 4 * WORD_WEIGHT;
/// Minimum ratio to the second language for function words that decide alone.
const MIN_LEAD_TO_DECIDE: f64 = 1.5;
/// Minimum weight in texts too short for `whichlang`: more than one function word.
const MIN_WEIGHT_IN_SHORT_TEXT: u32 = WORD_WEIGHT * 4 / 3;
/// Minimum ratio to the second language in texts too short for `whichlang`.
const MIN_LEAD_IN_SHORT_TEXT: f64 = 1.2;
/// With fewer words `whichlang` is not used.
const MIN_WORDS_FOR_WHICHLANG: usize = 3;
/// With this many words a supported language is always detected.
const MIN_WORDS_TO_DETECT: u32 = 12;
/// Bytes that `whichlang` gets; more bytes hardly improve its result.
const WHICHLANG_BYTES: usize = 200;
/// Maximum words of each text that are used.
const SAMPLE_WORDS: usize = 64;
/// Maximum characters of each text that are used.
const SAMPLE_CHARACTERS: usize = 400;
/// The languages of the corpus that the reader was fitted on.
const COVERED: [&str; 6] = ["en", "es", "de", "fr", "pt", "zh"];

/// Language of the customer's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Language {
    code: Option<String>,
    /// Whether the text is long enough to detect every supported language.
    is_detectable: bool,
}

impl Language {
    /// ISO 639-1 code, or `und`.
    pub(crate) fn code(&self) -> &str {
        self.code.as_deref().unwrap_or("und")
    }

    /// Whether the reader was fitted on the language. A text too short for detection counts as covered.
    pub(crate) fn is_covered(&self) -> bool {
        self.code.as_deref().map_or(!self.is_detectable, |code| COVERED.contains(&code))
    }

    /// The language of the customer's items; where the customer wrote too little for detection, that of the answers.
    pub(crate) fn of(words: &FunctionWords, items: &[Item<'_>]) -> Self {
        let side = |keep: fn(Role) -> bool| items.iter().filter(move |item| keep(item.role));
        let customer = detect(words, || side(|role| role == Role::Customer));
        let written: u32 = side(|role| role == Role::Customer).map(|item| item.word_count).sum();
        let is_detectable = written >= MIN_WORDS_TO_DETECT;
        let of_answers = || if is_detectable { None } else { detect(words, || side(Role::is_answer)) };
        Self { code: customer.or_else(of_answers), is_detectable }
    }
}

fn detect_by_script<'t>(texts: impl Iterator<Item = &'t str>) -> Option<&'static str> {
    let (mut han, mut kana, mut hangul, mut cyrillic, mut arabic, mut other) =
        (0usize, 0usize, 0usize, 0usize, 0usize, 0usize);
    for text in texts {
        if text.is_ascii() {
            other += text.len().min(SAMPLE_CHARACTERS);
            continue;
        }
        for character in text.chars().take(SAMPLE_CHARACTERS) {
            match character {
                '\u{3040}'..='\u{30FF}' => kana += 1,
                '\u{3400}'..='\u{9FFF}' => han += 1,
                '\u{AC00}'..='\u{D7AF}' => hangul += 1,
                '\u{0400}'..='\u{04FF}' => cyrillic += 1,
                '\u{0600}'..='\u{06FF}' => arabic += 1,
                _ if character.is_alphabetic() => other += 1,
                _ => {}
            }
        }
    }
    // A Chinese, Japanese or Korean character counts as two letters. Japanese mixes kana with Chinese characters.
    let (count, code) = if kana > 0 && kana * 4 >= han {
        ((kana + han) * 2, "ja")
    } else {
        [(han * 2, "zh"), (hangul * 2, "ko"), (cyrillic, "ru"), (arabic, "ar")]
            .into_iter()
            .max_by_key(|(count, _)| *count)?
    };
    (count > other).then_some(code)
}

/// Detects the language of one side of the conversation.
fn detect<'i, 'a: 'i, I>(words: &FunctionWords, items: impl Fn() -> I) -> Option<String>
where
    I: Iterator<Item = &'i Item<'a>>,
{
    if let Some(code) = detect_by_script(items().map(|item| item.message.content.as_str())) {
        return Some(code.to_owned());
    }
    let mut tally = Tally::default();
    for item in items() {
        let text = item.own_text();
        let chunks = text.split(|character: char| !character.is_alphanumeric() && !is_apostrophe(character));
        for word in chunks.filter(|word| !word.is_empty()).take(SAMPLE_WORDS) {
            words.add(&mut tally, &lowercase(word));
        }
    }
    let language = tally.clear_best(MIN_WEIGHT_TO_DECIDE, MIN_LEAD_TO_DECIDE).or_else(|| {
        let text = beginning(items().map(|item| item.message.content.as_str()));
        if text.split_whitespace().filter(|chunk| is_plain_word(chunk)).count() < MIN_WORDS_FOR_WHICHLANG {
            return tally.clear_best(MIN_WEIGHT_IN_SHORT_TEXT, MIN_LEAD_IN_SHORT_TEXT);
        }
        let guess = detect_with_whichlang(&text)?;
        (tally.of(guess) > 0).then_some(guess)
    });
    language.map(str::to_owned)
}

const fn is_apostrophe(character: char) -> bool {
    matches!(character, '\'' | '\u{2019}')
}

fn lowercase(word: &str) -> Cow<'_, str> {
    if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(word.to_lowercase().replace('\u{2019}', "'"))
    }
}

/// Whether a chunk between spaces is a word, not a number, an address or a product name.
fn is_plain_word(chunk: &str) -> bool {
    let bare = chunk.trim_matches(|character: char| !character.is_alphanumeric());
    !bare.is_empty()
        && bare.chars().all(|character| character.is_alphabetic() || matches!(character, '\'' | '’' | '-'))
}

/// The first bytes of the texts, one after the other.
fn beginning<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let mut beginning = String::with_capacity(WHICHLANG_BYTES);
    for text in texts {
        let room = WHICHLANG_BYTES.saturating_sub(beginning.len() + 1);
        if room == 0 {
            break;
        }
        beginning.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or(text));
        beginning.push(' ');
    }
    beginning
}

/// The language by `whichlang`, if it has a list of function words.
fn detect_with_whichlang(text: &str) -> Option<&'static str> {
    match whichlang::detect_language(text) {
        whichlang::Lang::Eng => Some("en"),
        whichlang::Lang::Spa => Some("es"),
        whichlang::Lang::Deu => Some("de"),
        whichlang::Lang::Fra => Some("fr"),
        whichlang::Lang::Por => Some("pt"),
        whichlang::Lang::Ita => Some("it"),
        whichlang::Lang::Nld => Some("nl"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_contracts::conversation::Message;

    fn language_of(text: &str) -> String {
        let message: Message = serde_json::from_value(serde_json::json!({
            "author": {"type": "contact", "external_id": "c"},
            "content": text, "external_id": "m", "timestamp": 0, "kind": "message"
        }))
        .unwrap();
        Language::of(&FunctionWords::builtin(), &[Item::read(&message, usize::MAX, false)]).code().to_owned()
    }

    #[test]
    fn language_is_detected_by_script_and_function_words() {
        let cases = [
            ("My router is dead and I need help with it.", "en"),
            ("No puedo iniciar sesión en mi cuenta.", "es"),
            ("Ich kann mich nicht anmelden, bitte hilf mir.", "de"),
            ("Je ne peux pas me connecter à mon compte.", "fr"),
            ("我的订单还没有到", "zh"),
            ("注文がまだ届きません", "ja"),
            ("Мой заказ не пришёл", "ru"),
            ("12345", "und"),
        ];
        for (text, language) in cases {
            assert_eq!(language_of(text), language, "{text}");
        }
    }
}
