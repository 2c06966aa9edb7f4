//! Language detection by function words.

use std::collections::HashMap;

const LISTS: &str = include_str!("../../lists/function_words.txt");

/// Weight of a function word of a single language; one of several languages is divided among them.
pub(super) const WORD_WEIGHT: u32 = 12;

/// Languages with function words, in the order of the file.
pub(super) const CODES: [&str; 7] = ["en", "es", "de", "fr", "pt", "it", "nl"];

/// The words of all languages, in lower case, with accents and without.
#[derive(Debug)]
pub(crate) struct FunctionWords {
    /// One bit for each language that has the word.
    words: HashMap<String, u8>,
}

impl FunctionWords {
    /// From the list that ships with the crate.
    pub(crate) fn builtin() -> Self {
        let mut words: HashMap<String, u8> = HashMap::new();
        for (code, list) in LISTS.lines().filter_map(|line| line.split_once(": ")) {
            let Some(number) = CODES.iter().position(|known| *known == code) else { continue };
            for word in list.split_whitespace() {
                for spelling in [word.to_owned(), without_accents(word)] {
                    *words.entry(spelling).or_default() |= 1 << number;
                }
            }
        }
        Self { words }
    }

    /// Counts a word in lower case.
    pub(super) fn add(&self, tally: &mut Tally, word: &str) {
        let Some(languages) = self.words.get(word).copied() else { return };
        let weight = WORD_WEIGHT / languages.count_ones().max(1);
        for (number, sum) in tally.0.iter_mut().enumerate() {
            *sum += if languages & (1 << number) == 0 { 0 } else { weight };
        }
    }
}

/// Sum of weights for each language.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally([u32; CODES.len()]);

impl Tally {
    /// The sum for a language code; 0 for an unknown one.
    pub(super) fn of(&self, code: &str) -> u32 {
        CODES.iter().position(|known| *known == code).and_then(|at| self.0.get(at).copied()).unwrap_or(0)
    }

    /// The language with the highest sum, if that is at least `minimum` and `lead` times the second.
    pub(super) fn clear_best(&self, minimum: u32, lead: f64) -> Option<&'static str> {
        let mut sums: Vec<(u32, &'static str)> = self.0.into_iter().zip(CODES).collect();
        sums.sort_by_key(|(sum, _)| std::cmp::Reverse(*sum));
        let (best, code) = *sums.first()?;
        let second = sums.get(1).map_or(0, |(sum, _)| *sum);
        (best >= minimum && f64::from(best) >= lead * f64::from(second)).then_some(code)
    }
}

/// The word without accents, as typed on a plain keyboard: "não" is "nao", "für" is "fuer".
fn without_accents(word: &str) -> String {
    let mut plain = String::with_capacity(word.len());
    for character in word.chars() {
        match character {
            'á' | 'à' | 'â' | 'ã' => plain.push('a'),
            'é' | 'è' | 'ê' | 'ë' => plain.push('e'),
            'í' | 'ì' | 'î' | 'ï' => plain.push('i'),
            'ó' | 'ò' | 'ô' | 'õ' => plain.push('o'),
            'ú' | 'ù' | 'û' => plain.push('u'),
            'ç' => plain.push('c'),
            'ñ' => plain.push('n'),
            'œ' => plain.push_str("oe"),
            'ä' => plain.push_str("ae"),
            'ö' => plain.push_str("oe"),
            'ü' => plain.push_str("ue"),
            'ß' => plain.push_str("ss"),
            other => plain.push(other),
        }
    }
    plain
}
