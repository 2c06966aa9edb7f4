//! Single words: stop words, and the function words that tell languages apart.

use super::LexiconError;
use super::format::Section;

/// Prefix of the sections that hold a language's function words; the ISO 639-1 code follows.
const LANGUAGE_PREFIX: &str = "language_";

/// Hashes of words in lower case; hashes, because texts are compared by them, too.
#[derive(Debug)]
pub(crate) struct WordLists {
    stop_words: Vec<u64>,
    languages: Vec<(String, Vec<u64>)>,
}

impl WordLists {
    /// Reads the sections of the word list.
    pub(super) fn read(file: &'static str, sections: &[Section<'_>]) -> Result<Self, LexiconError> {
        let mut stop_words = None;
        let mut languages = Vec::new();
        for section in sections {
            if section.name == "stop_words" {
                stop_words = Some(hashes(section));
            } else if let Some(language) = section.name.strip_prefix(LANGUAGE_PREFIX) {
                languages.push((language.to_owned(), hashes(section)));
            } else {
                return Err(LexiconError::UnknownSection { file, section: section.name.to_owned() });
            }
        }
        let stop_words = stop_words.ok_or(LexiconError::MissingSection("stop_words"))?;
        Ok(Self { stop_words, languages })
    }

    /// Whether the word says nothing about the topic.
    pub(crate) fn is_stop_word(&self, word: u64) -> bool {
        self.stop_words.binary_search(&word).is_ok()
    }

    /// Number of languages; they are numbered in the order of the list.
    pub(crate) fn language_count(&self) -> usize {
        self.languages.len()
    }

    /// ISO 639-1 code of a language by its number.
    pub(crate) fn language_code(&self, index: usize) -> Option<&str> {
        self.languages.get(index).map(|(code, _)| code.as_str())
    }

    /// The numbers of the languages that have `word` among their function words.
    pub(crate) fn languages_of(&self, word: u64) -> impl Iterator<Item = usize> + '_ {
        self.languages
            .iter()
            .enumerate()
            .filter(move |(_, (_, words))| words.binary_search(&word).is_ok())
            .map(|(index, _)| index)
    }
}

/// Hash of the lower-case characters of a word: fast, and the same on every machine. Three characters, of 21 bits
/// each, are mixed in at a time.
pub(crate) fn hash_word(word: impl Iterator<Item = char>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
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

fn hashes(section: &Section<'_>) -> Vec<u64> {
    let mut hashes: Vec<u64> = section
        .entries
        .iter()
        .flat_map(|line| line.split_whitespace())
        .map(|word| hash_word(word.chars()))
        .collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}
