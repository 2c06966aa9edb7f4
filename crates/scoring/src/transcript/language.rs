//! Which language the customer writes: by script, else by function words.

use super::{Item, Role};
use crate::lexicon::Lexicon;

/// A language is taken for granted only with so many of its function words.
const ENOUGH_WORDS: usize = 2;
/// The best language must have so many times the words of the second.
const CLEAR_LEAD: f64 = 1.2;
/// Characters of each text that are looked at.
const SAMPLE: usize = 400;

/// Language of the customer's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Language {
    code: String,
}

impl Language {
    /// ISO 639-1 code, or `und`.
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// Whether the phrase lists cover the language.
    pub(crate) fn is_covered(&self) -> bool {
        self.code == "en"
    }

    /// Whether it could not be told.
    pub(crate) fn is_unknown(&self) -> bool {
        self.code == "und"
    }

    /// The language of the customer's items; of the answers where the customer wrote too little.
    pub(super) fn of(lexicon: &Lexicon, items: &[Item<'_>]) -> Self {
        let of_role = |keep: fn(Role) -> bool| {
            let texts: Vec<&Item<'_>> = items.iter().filter(|item| keep(item.role)).collect();
            by_script(&texts).or_else(|| by_words(lexicon, &texts))
        };
        let code = of_role(|role| role == Role::Customer).or_else(|| of_role(Role::answers));
        Self { code: code.unwrap_or_else(|| "und".to_owned()) }
    }
}

fn by_script(items: &[&Item<'_>]) -> Option<String> {
    let (mut han, mut kana, mut hangul, mut cyrillic, mut arabic, mut other) =
        (0u32, 0u32, 0u32, 0u32, 0u32, 0u32);
    for character in items.iter().flat_map(|item| item.message.content.chars().take(SAMPLE)) {
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
    // A character of these scripts stands for more than a letter does.
    let (count, code) = if kana > 0 && kana * 4 >= han {
        ((kana + han) * 2, "ja")
    } else {
        [(han * 2, "zh"), (hangul * 2, "ko"), (cyrillic, "ru"), (arabic, "ar")]
            .into_iter()
            .max_by_key(|(count, _)| *count)?
    };
    (count > other).then(|| code.to_owned())
}

fn by_words(lexicon: &Lexicon, items: &[&Item<'_>]) -> Option<String> {
    let mut counts = vec![0usize; lexicon.words.language_count()];
    for word in items.iter().flat_map(|item| &item.reading.first_words) {
        for language in lexicon.words.languages_of(*word) {
            if let Some(count) = counts.get_mut(language) {
                *count += 1;
            }
        }
    }
    let (best, most) = counts.iter().copied().enumerate().rev().max_by_key(|(_, count)| *count)?;
    let second = counts
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != best)
        .map(|(_, count)| *count)
        .max()
        .unwrap_or(0);
    let clear = most >= ENOUGH_WORDS && most as f64 >= CLEAR_LEAD * second as f64;
    clear.then(|| lexicon.words.language_code(best).map(str::to_owned)).flatten()
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
        Language::of(&lexicon, &[item]).code
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
