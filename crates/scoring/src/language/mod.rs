//! Which language the customer writes, and in which one each text is read: by script, else by function words, else
//! by `whichlang`.
//!
//! Measured on the short texts of `tests/samples/languages.tsv`: 180 in eight languages, 8 in none, 22 in others.
//! `whichlang` (a linear model over n-grams) names 178 of the 180 rightly, but names one for each of the other 30,
//! too ("iPhone 14 Pro", Polish). Function words alone name 157, leave 22 open, name one of the 180 and 4 of the 30 wrongly, and
//! cost next to nothing. Together 171 are right, 8 open and 1 wrong, and 26 of the 30 stay open: function words decide
//! where there are enough of them, as in nearly every conversation; else `whichlang` is asked, and believed where a
//! function word agrees. Texts that are too short or mixed stay open.

mod function_words;

use std::borrow::Cow;

pub(crate) use self::function_words::FunctionWords;
use self::function_words::{Tally, WORD_WORTH};
use crate::transcript::{Item, Role};

/// So much worth of function words decides alone.
const ENOUGH_TO_DECIDE: u32 = 4 * WORD_WORTH;
/// A language that decides alone has so many times what speaks for the second.
const LEAD_TO_DECIDE: f64 = 1.5;
/// In texts too short for `whichlang` more than one function word must speak for a language,
const ENOUGH_TO_REPORT: u32 = WORD_WORTH * 4 / 3;
/// and clearly more than for any other.
const LEAD_TO_REPORT: f64 = 1.2;
/// With fewer words `whichlang` is not asked.
const ENOUGH_TO_GUESS: usize = 3;
/// In so many words of a language that can be told, it is told.
const WORDS_THAT_TELL: u32 = 12;
/// Bytes that `whichlang` looks at: more would say little more.
const GUESSED_FROM: usize = 200;
/// Words of each text that are looked at.
const SAMPLE_WORDS: usize = 64;
/// Characters of each text that are looked at.
const SAMPLE: usize = 400;
/// The languages of the corpus that the reader was fitted on.
const COVERED: [&str; 6] = ["en", "es", "de", "fr", "pt", "zh"];

/// Language of the customer's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Language {
    code: Option<String>,
    /// Whether so much was written that a language that can be told would have been.
    is_telling: bool,
}

impl Language {
    /// ISO 639-1 code, or `und`.
    pub(crate) fn code(&self) -> &str {
        self.code.as_deref().unwrap_or("und")
    }

    /// Whether the reader was fitted on the language. A text too short to tell its language is not called foreign.
    pub(crate) fn is_covered(&self) -> bool {
        self.code.as_deref().map_or(!self.is_telling, |code| COVERED.contains(&code))
    }

    /// The language of the customer's items; of the answers where the customer wrote too little.
    pub(crate) fn of(words: &FunctionWords, items: &[Item<'_>]) -> Self {
        let side = |keep: fn(Role) -> bool| items.iter().filter(move |item| keep(item.role));
        let customer = told(words, || side(|role| role == Role::Customer));
        let code = customer.or_else(|| told(words, || side(Role::answers)));
        let written: u32 = side(|role| role == Role::Customer).map(|item| item.words).sum();
        Self { code, is_telling: written >= WORDS_THAT_TELL }
    }
}

fn by_script<'t>(texts: impl Iterator<Item = &'t str>) -> Option<&'static str> {
    let (mut han, mut kana, mut hangul, mut cyrillic, mut arabic, mut other) =
        (0usize, 0usize, 0usize, 0usize, 0usize, 0usize);
    for text in texts {
        if text.is_ascii() {
            other += text.len().min(SAMPLE);
            continue;
        }
        for character in text.chars().take(SAMPLE) {
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
    // A character of these scripts stands for more than a letter does.
    let (count, code) = if kana > 0 && kana * 4 >= han {
        ((kana + han) * 2, "ja")
    } else {
        [(han * 2, "zh"), (hangul * 2, "ko"), (cyrillic, "ru"), (arabic, "ar")]
            .into_iter()
            .max_by_key(|(count, _)| *count)?
    };
    (count > other).then_some(code)
}

/// The language of one side of the conversation.
fn told<'i, 'a: 'i, I>(words: &FunctionWords, items: impl Fn() -> I) -> Option<String>
where
    I: Iterator<Item = &'i Item<'a>>,
{
    if let Some(code) = by_script(items().map(|item| item.message.content.as_str())) {
        return Some(code.to_owned());
    }
    let mut tally = Tally::default();
    for item in items() {
        let text = item.own_text();
        let chunks = text.split(|character: char| !character.is_alphanumeric() && !is_apostrophe(character));
        for word in chunks.filter(|word| !word.is_empty()).take(SAMPLE_WORDS) {
            words.add(&mut tally, &in_lower_case(word));
        }
    }
    let language = tally.clear_best(ENOUGH_TO_DECIDE, LEAD_TO_DECIDE).or_else(|| {
        let text = beginning(items().map(|item| item.message.content.as_str()));
        if text.split_whitespace().filter(|chunk| is_plain_word(chunk)).count() < ENOUGH_TO_GUESS {
            return tally.clear_best(ENOUGH_TO_REPORT, LEAD_TO_REPORT);
        }
        let guess = guessed(&text)?;
        (tally.of(guess) > 0).then_some(guess)
    });
    language.map(str::to_owned)
}

const fn is_apostrophe(character: char) -> bool {
    matches!(character, '\'' | '\u{2019}')
}

fn in_lower_case(word: &str) -> Cow<'_, str> {
    if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(word.to_lowercase().replace('\u{2019}', "'"))
    }
}

/// Whether a chunk between spaces is a word, and no number, address or name of a product.
fn is_plain_word(chunk: &str) -> bool {
    let bare = chunk.trim_matches(|character: char| !character.is_alphanumeric());
    !bare.is_empty()
        && bare.chars().all(|character| character.is_alphabetic() || matches!(character, '\'' | '’' | '-'))
}

/// The first bytes of the texts, one after the other.
fn beginning<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let mut beginning = String::with_capacity(GUESSED_FROM);
    for text in texts {
        let room = GUESSED_FROM.saturating_sub(beginning.len() + 1);
        if room == 0 {
            break;
        }
        beginning.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or(text));
        beginning.push(' ');
    }
    beginning
}

/// What `whichlang` takes the text for, as far as its function words are listed.
fn guessed(text: &str) -> Option<&'static str> {
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
    fn the_language_is_told_by_script_and_function_words() {
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
