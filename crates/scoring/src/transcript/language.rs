//! Which language the customer writes, and in which one each text is read: by script, else by function words, else
//! by `whichlang`.
//!
//! Measured on the short texts of `tests/samples/languages.tsv`: 180 in eight languages, 8 in none, 22 in others.
//! `whichlang` (a linear model over n-grams) names 178 of the 180 rightly, but names one for each of the other 30,
//! too ("iPhone 14 Pro", Polish). Function words alone name 157, leave 22 open, name one of the 180 and 4 of the 30 wrongly, and
//! cost next to nothing. Together 171 are right, 8 open and 1 wrong, and 26 of the 30 stay open: function words decide
//! where there are enough of them, as in nearly every conversation; else `whichlang` is asked, and believed where a
//! function word agrees. Texts that are too short or mixed stay open.

use super::{Item, Role};
use crate::lexicon::{LanguageNumber, Lexicon, Tally, WORD_WORTH};

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
/// Whoever writes so many words in a language that can be told, can be told.
const WORDS_THAT_TELL: u32 = 12;
/// Bytes that `whichlang` looks at: more would say little more.
const GUESSED_FROM: usize = 200;
/// One word that no other language has is enough to choose the phrases for a text: they say something only where
/// they stand.
const ENOUGH_TO_READ: u32 = WORD_WORTH;
/// What speaks for the language of the rest counts so many times: close languages share words.
const LEAD_TO_READ: u32 = 2;
/// Characters of each text that are looked at.
const SAMPLE: usize = 400;

/// Language of the customer's text, and of the answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Language {
    code: Option<String>,
    answers: Option<String>,
    /// The number of `code`, and that of `answers`.
    numbers: [Option<LanguageNumber>; 2],
    /// Whether so much was written that a language that can be told would have been.
    is_telling: bool,
}

impl Language {
    /// ISO 639-1 code, or `und`.
    pub(crate) fn code(&self) -> &str {
        self.code.as_deref().unwrap_or("und")
    }

    /// How well the phrase lists cover the language.
    pub(crate) fn coverage(&self) -> Coverage {
        match self.code.as_deref() {
            None if self.is_telling => Coverage::None,
            None => Coverage::Unknown,
            Some("en") => Coverage::Complete,
            Some(code) if Lexicon::has_list_of(code) => Coverage::Listed,
            Some(_) => Coverage::None,
        }
    }

    /// The language of the customer's items; of the answers where the customer wrote too little.
    pub(super) fn of(lexicon: &Lexicon, items: &[Item<'_>]) -> Self {
        let side = |keep: fn(Role) -> bool| items.iter().filter(move |item| keep(item.role));
        let customer = told(lexicon, || side(|role| role == Role::Customer));
        let answers = told(lexicon, || side(Role::answers));
        let written: u32 = side(|role| role == Role::Customer).map(|item| item.reading.words).sum();
        let code = customer.or_else(|| answers.clone());
        let answers = answers.or_else(|| code.clone());
        let numbers = [&code, &answers].map(|code| lexicon.words.language(code.as_deref()?));
        Self { code, answers, numbers, is_telling: written >= WORDS_THAT_TELL }
    }

    /// The language whose phrases count in `item`: its own where it shows one, else that of its side.
    pub(super) fn to_read(&self, lexicon: &Lexicon, item: &Item<'_>) -> Option<LanguageNumber> {
        let [customer, answers] = self.numbers;
        let (side, code) =
            if item.role.answers() { (answers, &self.answers) } else { (customer, &self.code) };
        let text = item.message.content.as_str();
        if !text.is_ascii()
            && let Some(script) = by_script(std::iter::once(text))
        {
            // A short Japanese text may hold nothing but Chinese characters.
            let is_japanese = code.as_deref() == Some("ja");
            return lexicon.words.language(if is_japanese { "ja" } else { script });
        }
        let words = &item.reading.languages;
        let of_side = side.map_or(0, |side| words.of(side));
        words
            .clear_best(ENOUGH_TO_READ, LEAD_TO_REPORT)
            .filter(|own| words.of(*own) >= ENOUGH_TO_READ + LEAD_TO_READ * of_side)
            .or(side)
    }
}

/// How well the phrase lists cover a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// English: what the scorer was fitted and measured on.
    Complete,
    /// Every group has phrases, fewer than in English.
    Listed,
    /// No phrases: only the shape of the conversation speaks.
    None,
    /// The language could not be told.
    Unknown,
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
fn told<'i, 'a: 'i, I>(lexicon: &Lexicon, items: impl Fn() -> I) -> Option<String>
where
    I: Iterator<Item = &'i Item<'a>>,
{
    if let Some(code) = by_script(items().map(|item| item.message.content.as_str())) {
        return Some(code.to_owned());
    }
    let mut tally = Tally::default();
    for item in items() {
        tally.add(&item.reading.languages);
    }
    let language = tally.clear_best(ENOUGH_TO_DECIDE, LEAD_TO_DECIDE).or_else(|| {
        let text = beginning(items().map(|item| item.message.content.as_str()));
        if text.split_whitespace().filter(|chunk| is_plain_word(chunk)).count() < ENOUGH_TO_GUESS {
            return tally.clear_best(ENOUGH_TO_REPORT, LEAD_TO_REPORT);
        }
        let guess = lexicon.words.language(guessed(&text)?)?;
        (tally.of(guess) > 0).then_some(guess)
    });
    lexicon.words.language_code(language?).map(str::to_owned)
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
    use crate::transcript::Reading;
    use assay_contracts::conversation::Message;

    fn language_of(text: &str) -> String {
        let lexicon = Lexicon::builtin().unwrap();
        let message: Message = serde_json::from_value(serde_json::json!({
            "author": {"type": "contact", "external_id": "c"},
            "content": text, "external_id": "m", "timestamp": 0, "kind": "message"
        }))
        .unwrap();
        let item = Item { role: Role::Customer, message: &message, reading: Reading::of(&lexicon, text) };
        Language::of(&lexicon, &[item]).code().to_owned()
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
