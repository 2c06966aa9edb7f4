//! Single words: stop words, and the function words that tell languages apart.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::LexiconError;
use super::format::Section;
use super::languages::LanguageNumber;
use super::spelling::without_accents;

/// The section of a language's own list that holds its function words.
pub(super) const FUNCTION_WORDS: &str = "function_words";
/// Prefix of the sections with the function words of languages without a list; the ISO 639-1 code follows.
const LANGUAGE_PREFIX: &str = "language_";
/// At most so many languages are told apart by words.
const MOST_LANGUAGES: usize = 16;
/// What a function word of one language alone is worth; one of several languages is shared out.
pub(crate) const WORD_WORTH: u32 = 12;

/// What the lists say about a word.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WordFacts {
    /// Whether it says nothing about the topic.
    pub is_stop_word: bool,
    /// One bit for each language that has it among its function words.
    languages: u16,
}

/// The words by the hashes of their lower case; hashes, because texts are compared by them, too.
#[derive(Debug, Default)]
pub(crate) struct WordLists {
    facts: HashMap<u64, WordFacts, BuildHasherDefault<HashedAlready>>,
    languages: Vec<String>,
}

impl WordLists {
    /// Reads the sections of the word list.
    pub(super) fn read(file: &'static str, sections: &[Section<'_>]) -> Result<Self, LexiconError> {
        let mut lists = Self::default();
        for section in sections {
            if section.name == "stop_words" {
                for word in section.words() {
                    lists.facts.entry(hash_word(word.chars())).or_default().is_stop_word = true;
                }
            } else if let Some(code) = section.name.strip_prefix(LANGUAGE_PREFIX) {
                lists.add_language(code, section.words())?;
            } else {
                return Err(LexiconError::UnknownSection { file, section: section.name.to_owned() });
            }
        }
        let has_stop_words = lists.facts.values().any(|facts| facts.is_stop_word);
        has_stop_words.then_some(lists).ok_or(LexiconError::MissingSection("stop_words"))
    }

    /// Adds a language with its function words, with accents and without.
    pub(super) fn add_language<'a>(
        &mut self,
        code: &str,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<LanguageNumber, LexiconError> {
        let number = self.languages.len();
        if number >= MOST_LANGUAGES {
            return Err(LexiconError::TooManyLanguages(MOST_LANGUAGES));
        }
        self.languages.push(code.to_owned());
        for word in words {
            for spelling in [word.to_owned(), without_accents(word)] {
                self.facts.entry(hash_word(spelling.chars())).or_default().languages |= 1 << number;
            }
        }
        Ok(LanguageNumber(number as u8))
    }

    /// What is known of the word with this hash.
    pub(crate) fn facts(&self, word: u64) -> WordFacts {
        self.facts.get(&word).copied().unwrap_or_default()
    }

    /// ISO 639-1 code of a language.
    pub(crate) fn language_code(&self, number: LanguageNumber) -> Option<&str> {
        self.languages.get(number.index()).map(String::as_str)
    }

    /// The language with this ISO 639-1 code.
    pub(crate) fn language(&self, code: &str) -> Option<LanguageNumber> {
        self.languages.iter().position(|language| language == code).map(|at| LanguageNumber(at as u8))
    }
}

/// How strongly words speak for each language.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally([u32; MOST_LANGUAGES]);

impl Tally {
    /// Counts a word.
    pub(crate) fn add_word(&mut self, facts: WordFacts) {
        let mut languages = facts.languages;
        let worth = WORD_WORTH / languages.count_ones().max(1);
        while languages != 0 {
            if let Some(sum) = self.0.get_mut(languages.trailing_zeros() as usize) {
                *sum += worth;
            }
            languages &= languages - 1;
        }
    }

    /// Adds what other words said.
    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum += more;
        }
    }

    /// How strongly the words speak for a language; 0 when none does.
    pub(crate) fn of(&self, language: LanguageNumber) -> u32 {
        self.0.get(language.index()).copied().unwrap_or(0)
    }

    /// The language that most speaks for, if it is at least `enough` and `lead` times what speaks for the second.
    pub(crate) fn clear_best(&self, enough: u32, lead: f64) -> Option<LanguageNumber> {
        let (mut best, mut most, mut second) = (0, 0, 0);
        for (number, sum) in self.0.iter().copied().enumerate() {
            if sum > most {
                (best, second, most) = (number, most, sum);
            } else {
                second = second.max(sum);
            }
        }
        (most >= enough && f64::from(most) >= lead * f64::from(second)).then_some(LanguageNumber(best as u8))
    }
}

/// Hash of the lower-case characters of a word: fast, and the same on every machine. Three characters, of 21 bits
/// each, are mixed in at a time.
pub(crate) fn hash_word(word: impl Iterator<Item = char>) -> u64 {
    let mut hash = HASH_OF_NOTHING;
    let (mut block, mut count) = (0u64, 0u32);
    for character in word {
        block = block << 21 | u64::from(u32::from(lower(character)));
        count += 1;
        if count.is_multiple_of(3) {
            hash = mixed(hash, block);
            block = 0;
        }
    }
    hash = mixed(hash, block);
    hash ^ hash >> 32
}

/// [`hash_word`] of the first `most` characters of `word`. Most words are ASCII, where bytes are characters.
pub(crate) fn hash_beginning(word: &str, most: usize) -> u64 {
    if !word.is_ascii() {
        return hash_word(word.chars().take(most));
    }
    let bytes = word.as_bytes().get(..most).unwrap_or(word.as_bytes());
    let block =
        |bytes: &[u8]| bytes.iter().fold(0, |block, byte| block << 21 | u64::from(byte.to_ascii_lowercase()));
    let mut blocks = bytes.chunks_exact(3);
    let hash = blocks.by_ref().fold(HASH_OF_NOTHING, |hash, bytes| mixed(hash, block(bytes)));
    let hash = mixed(hash, block(blocks.remainder()));
    hash ^ hash >> 32
}

/// What hashes begin with.
const HASH_OF_NOTHING: u64 = 0xcbf2_9ce4_8422_2325;

fn mixed(hash: u64, block: u64) -> u64 {
    (hash.rotate_left(23) ^ block).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The first character of the lower case.
fn lower(character: char) -> char {
    if character.is_ascii() {
        character.to_ascii_lowercase()
    } else {
        character.to_lowercase().next().unwrap_or(character)
    }
}

/// The keys are hashes: hashing them again would cost more than the rest of the look-up.
#[derive(Debug, Default)]
struct HashedAlready(u64);

impl Hasher for HashedAlready {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_one_language_alone_says_more_than_a_shared_one() {
        let mut lists = WordLists::default();
        let spanish = lists.add_language("es", ["muy", "de"].into_iter()).unwrap();
        let portuguese = lists.add_language("pt", ["não", "de"].into_iter()).unwrap();
        let tally_of = |words: &[&str]| {
            let mut tally = Tally::default();
            for word in words {
                tally.add_word(lists.facts(hash_word(word.chars())));
            }
            tally
        };
        assert_eq!(tally_of(&["muy", "de"]).clear_best(WORD_WORTH, 2.0), Some(spanish));
        assert_eq!(tally_of(&["nao"]).clear_best(WORD_WORTH, 2.0), Some(portuguese), "without accents");
        assert_eq!(tally_of(&["de", "de"]).clear_best(WORD_WORTH, 1.2), None, "shared by both");
        assert_eq!(lists.language("pt").and_then(|number| lists.language_code(number)), Some("pt"));
    }

    #[test]
    fn the_short_cut_for_ascii_gives_the_same_hashes() {
        for word in ["", "a", "No", "yes", "Don't", "iPhone14", "ÉTÉ", "señor", "谢谢"] {
            for most in [1, 2, 3, 4, 256] {
                let hash = hash_word(word.chars().take(most));
                assert_eq!(hash_beginning(word, most), hash, "{most} characters of {word}");
            }
        }
    }
}
