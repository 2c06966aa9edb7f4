//! Which language the customer writes, and in which one each text is read: by script, else by function words.
//!
//! Own function words and not a general detector: measured on the short texts of `tests/samples/languages.tsv`
//! (see `tests/languages.rs`), they name fewer languages wrongly, and they can say that they do not know, which
//! texts of few words need.

use super::{Item, Role};
use crate::lexicon::{LanguageNumber, Lexicon, Tally, WORD_WORTH};

/// A language is reported only when its function words are worth more than this: one word is not enough.
const ENOUGH_TO_REPORT: u32 = WORD_WORTH * 4 / 3;
/// The reported language must have so many times what speaks for the second.
const LEAD_TO_REPORT: f64 = 1.2;
/// One word that no other language has is enough to choose the phrases for a text: they say something only where
/// they stand.
const ENOUGH_TO_READ: u32 = WORD_WORTH;
/// A text is read in another language than the rest only when it is clearly in it.
const LEAD_TO_READ: f64 = 2.0;
/// Characters of each text that are looked at.
const SAMPLE: usize = 400;

/// Language of the customer's text, and of the answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Language {
    code: Option<String>,
    answers: Option<String>,
}

impl Language {
    /// ISO 639-1 code, or `und`.
    pub(crate) fn code(&self) -> &str {
        self.code.as_deref().unwrap_or("und")
    }

    /// How well the phrase lists cover the language.
    pub(crate) fn coverage(&self) -> Coverage {
        match self.code.as_deref() {
            None => Coverage::Unknown,
            Some("en") => Coverage::Complete,
            Some(code) if Lexicon::has_list_of(code) => Coverage::Listed,
            Some(_) => Coverage::None,
        }
    }

    /// The language of the customer's items; of the answers where the customer wrote too little.
    pub(super) fn of(lexicon: &Lexicon, items: &[Item<'_>]) -> Self {
        let of_role = |keep: fn(Role) -> bool| {
            let texts = || items.iter().filter(|item| keep(item.role));
            by_script(texts().map(|item| item.message.content.as_str()))
                .map(str::to_owned)
                .or_else(|| by_words(lexicon, texts().map(|item| &item.reading.languages)))
        };
        let (customer, answers) = (of_role(|role| role == Role::Customer), of_role(Role::answers));
        let code = customer.or_else(|| answers.clone());
        Self { answers: answers.or_else(|| code.clone()), code }
    }

    /// The language whose phrases count in `item`: its own where it shows one, else that of its side.
    pub(super) fn to_read(&self, lexicon: &Lexicon, item: &Item<'_>) -> Option<LanguageNumber> {
        let text = item.message.content.as_str();
        if let Some(code) = by_script(std::iter::once(text)) {
            return lexicon.words.language(code);
        }
        let side = if item.role.answers() { &self.answers } else { &self.code };
        item.reading
            .languages
            .clear_best(ENOUGH_TO_READ, LEAD_TO_READ)
            .or_else(|| lexicon.words.language(side.as_deref()?))
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

fn by_words<'t>(lexicon: &Lexicon, tallies: impl Iterator<Item = &'t Tally>) -> Option<String> {
    let mut all = Tally::default();
    for tally in tallies {
        all.add(tally);
    }
    let best = all.clear_best(ENOUGH_TO_REPORT, LEAD_TO_REPORT)?;
    lexicon.words.language_code(best).map(str::to_owned)
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
