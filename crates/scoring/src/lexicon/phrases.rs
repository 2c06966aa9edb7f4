//! Finds every phrase in a text, by walking a tree of all phrases from each place where one may begin.
//!
//! An automaton that has all phrases in mind at every byte is slower: phrases begin where words begin, and three
//! bytes tell for most words that no phrase begins with them.

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous::NFA;

use super::{LexiconError, is_ascii_letter_or_digit};

/// A phrase in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Match {
    /// Number of the phrase.
    pub phrase: usize,
    /// Byte offset of its beginning.
    pub start: usize,
    /// Byte offset behind its end.
    pub end: usize,
}

/// All phrases, ready to be looked for without regard to ASCII case.
#[derive(Debug)]
pub(super) struct Phrases {
    tree: NFA,
    root: StateID,
    beginnings: Beginnings,
}

impl Phrases {
    /// Compiles `phrases`; their numbers are their places.
    pub(super) fn compile(phrases: &[String]) -> Result<Self, LexiconError> {
        let tree =
            NFA::builder().ascii_case_insensitive(true).dense_depth(3).prefilter(false).build(phrases)?;
        let root = tree.start_state(Anchored::Yes)?;
        Ok(Self { tree, root, beginnings: Beginnings::of(phrases) })
    }

    /// Calls `found` for every phrase in `text`, by place, then by length. Those that begin inside of a run of
    /// ASCII letters and digits, and so are no words of their own, may be left out.
    pub(super) fn find(&self, text: &str, mut found: impl FnMut(Match)) {
        let bytes = text.as_bytes();
        let mut in_word = false;
        for (start, first) in bytes.windows(3).enumerate() {
            let joins = is_ascii_letter_or_digit(first[0]);
            // One condition without short cuts: a processor cannot guess where words begin.
            if !(in_word & joins) & self.beginnings.may_hold([first[0], first[1], first[2]]) {
                self.walk(bytes, start, &mut found);
            }
            in_word = joins;
        }
        for start in bytes.len().saturating_sub(2)..bytes.len() {
            self.walk(bytes, start, &mut found);
        }
    }

    /// Reports the phrases that begin at `start`.
    fn walk(&self, bytes: &[u8], start: usize, found: &mut impl FnMut(Match)) {
        let mut state = self.root;
        for (end, byte) in (start + 1..).zip(bytes.iter().skip(start)) {
            state = self.tree.next_state(Anchored::Yes, state, *byte);
            if !self.tree.is_special(state) {
                continue;
            }
            if self.tree.is_dead(state) {
                return;
            }
            for index in 0..if self.tree.is_match(state) { self.tree.match_len(state) } else { 0 } {
                let phrase = self.tree.match_pattern(state, index);
                // An end is also the end of phrases that begin later on the same way.
                if self.tree.pattern_len(phrase) == end - start {
                    found(Match { phrase: phrase.as_usize(), start, end });
                }
            }
        }
    }
}

/// Which three bytes begin a phrase, as one bit for every five bits of each: enough to tell letters apart, and the
/// same for both cases of a letter. Other bytes may be taken for letters; the walk finds out.
struct Beginnings(Box<[u64; 512]>);

impl Beginnings {
    fn of(phrases: &[String]) -> Self {
        let mut beginnings = Self(Box::new([0; 512]));
        let any: Vec<u8> = (0..32).collect();
        for phrase in phrases {
            let at = |index: usize| phrase.as_bytes().get(index..=index).unwrap_or(&any);
            for first in at(0) {
                for second in at(1) {
                    for third in at(2) {
                        let (word, bit) = Self::place([*first, *second, *third]);
                        beginnings.0[word] |= bit;
                    }
                }
            }
        }
        beginnings
    }

    fn may_hold(&self, bytes: [u8; 3]) -> bool {
        let (word, bit) = Self::place(bytes);
        self.0[word] & bit != 0
    }

    fn place(bytes: [u8; 3]) -> (usize, u64) {
        let [first, second, third] = bytes.map(|byte| usize::from(byte & 31));
        let code = first << 10 | second << 5 | third;
        (code / 64, 1 << (code % 64))
    }
}

impl std::fmt::Debug for Beginnings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count: u32 = self.0.iter().map(|word| word.count_ones()).sum();
        write!(formatter, "Beginnings({count})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(phrases: &[&str], text: &str) -> Vec<(usize, usize, usize)> {
        let phrases: Vec<String> = phrases.iter().map(|phrase| (*phrase).to_owned()).collect();
        let mut found = Vec::new();
        Phrases::compile(&phrases)
            .unwrap()
            .find(text, |Match { phrase, start, end }| found.push((phrase, start, end)));
        found
    }

    #[test]
    fn every_phrase_is_found_at_every_beginning_of_a_word() {
        assert_eq!(
            found(&["no", "not", "not ok", "ok"], "NOT ok, knot: no"),
            [(0, 0, 2), (1, 0, 3), (2, 0, 6), (3, 4, 6), (0, 14, 16)]
        );
    }

    #[test]
    fn short_phrases_and_other_scripts_are_found_to_the_last_byte() {
        assert_eq!(found(&["x", "谢谢", "é"], "x谢谢 éx"), [(0, 0, 1), (1, 1, 7), (2, 8, 10), (0, 10, 11)]);
        assert_eq!(found(&["a"], "a"), [(0, 0, 1)]);
        assert_eq!(found(&["ab"], ""), []);
    }
}
