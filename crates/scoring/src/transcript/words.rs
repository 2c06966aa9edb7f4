//! Word statistics of a text, for comparing messages.

use std::borrow::Cow;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use icu_normalizer::ComposingNormalizerBorrowed;

use super::identifiers::for_each_identifier;
use crate::word_boundary::is_unspaced;

/// Words of a text that are compared: bounds the time on long texts.
const MAX_COMPARED_WORDS: usize = 64;
/// Characters of a word or identifier that are hashed: bounds the time on texts without spaces.
const MAX_HASHED_CHARACTERS: usize = 256;
/// Words too common to indicate similarity.
const STOP_WORDS: [&str; 38] = [
    "a", "an", "the", "i", "you", "to", "of", "and", "in", "is", "it", "for", "on", "my", "me", "that",
    "this", "with", "be", "do", "can", "at", "we", "your", "so", "have", "are", "was", "if", "or", "not",
    "but", "please", "would", "like", "just", "as", "am",
];

/// Word count and hashes of a text.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Words; in scripts without spaces two characters count as one.
    pub count: u32,
    /// Hashes of content words, sorted; in scripts without spaces, of pairs of characters.
    pub content: Vec<u64>,
    /// Hashes of order numbers, e-mail addresses and the like, sorted.
    pub identifiers: Vec<u64>,
}

impl Words {
    /// Analyses a text.
    pub(super) fn of(text: &str) -> Self {
        let text = &nfc(text);
        let mut words = Self::default();
        let mut previous_unspaced: Option<char> = None;
        let mut unspaced_length = 0u32;
        let mut start: Option<usize> = None;
        // The blank at the end closes the last word.
        for (at, character) in text.char_indices().chain(std::iter::once((text.len(), ' '))) {
            let in_word = character.is_alphanumeric() || character == '\'';
            if (!in_word || is_unspaced(character))
                && let Some(begin) = start.take()
            {
                words.add_word(text.get(begin..at).unwrap_or(""));
            }
            if in_word && is_unspaced(character) {
                words.count += u32::from(unspaced_length.is_multiple_of(2));
                if let Some(before) = previous_unspaced {
                    words.add_content(hash((before, character)));
                }
                previous_unspaced = Some(character);
                unspaced_length += 1;
                continue;
            }
            (previous_unspaced, unspaced_length) = (None, 0);
            if in_word && start.is_none() {
                start = Some(at);
            }
        }
        for_each_identifier(text, |_, identifier| {
            words.identifiers.push(hash_beginning(identifier));
            words.identifiers.len() < MAX_COMPARED_WORDS
        });
        for hashes in [&mut words.content, &mut words.identifiers] {
            hashes.sort_unstable();
            hashes.dedup();
        }
        words
    }

    fn add_word(&mut self, word: &str) {
        self.count += 1;
        if self.content.len() < MAX_COMPARED_WORDS && !STOP_WORDS.contains(&word.to_lowercase().as_str()) {
            self.add_content(hash_beginning(word));
        }
    }

    fn add_content(&mut self, hash: u64) {
        if self.content.len() < MAX_COMPARED_WORDS {
            self.content.push(hash);
        }
    }
}

/// The text in Unicode normalisation form C: some systems send letters and accents as separate characters.
pub(crate) fn nfc(text: &str) -> Cow<'_, str> {
    ComposingNormalizerBorrowed::new_nfc().normalize(text)
}

fn hash_beginning(word: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    for character in word.chars().take(MAX_HASHED_CHARACTERS).flat_map(char::to_lowercase) {
        character.hash(&mut hasher);
    }
    hasher.finish()
}

fn hash(pair: (char, char)) -> u64 {
    let mut hasher = DefaultHasher::new();
    pair.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_identifiers_are_counted_in_all_scripts() {
        let words = Words::of("My order 88123 isn't here");
        assert_eq!((words.count, words.content.len(), words.identifiers.len()), (5, 4, 1));
        assert_eq!(Words::of("订单还没到").count, 3);
        assert_eq!(Words::of("order order").content.len(), 1);
        assert_eq!(Words::of("").count, 0);
        // Decomposed accents.
        let (composed, decomposed) = (Words::of("café fermé"), Words::of("cafe\u{301} ferme\u{301}"));
        assert_eq!((composed.count, &composed.content), (2, &decomposed.content));
    }
}
