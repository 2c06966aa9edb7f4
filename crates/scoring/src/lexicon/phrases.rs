//! Finds every phrase in a text, by walking a tree of all phrases from each place where one may begin.
//!
//! An automaton that has all phrases in mind at every byte is slower: phrases begin where words begin, and the eight
//! bytes there tell for most words that no phrase begins with them.

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous::NFA;

use super::beginnings::{Beginnings, Window};
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
        for (start, first) in bytes.iter().enumerate() {
            let joins = is_ascii_letter_or_digit(*first);
            let may_begin = !(in_word & joins) & self.beginnings.may_begin_with(*first);
            in_word = joins;
            if may_begin && self.beginnings.may_hold(Window::at(bytes, start)) {
                self.walk(bytes, start, &mut found);
            }
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

    #[test]
    fn a_phrase_of_any_length_is_found_in_either_case_where_the_text_ends_with_it() {
        let phrase = "Thanks, that is all\u{2019}";
        for (length, _) in phrase.char_indices().skip(1) {
            let phrase = &phrase[..length];
            for text in [phrase.to_owned(), phrase.to_lowercase(), phrase.to_uppercase()] {
                let text = format!("({text}");
                assert_eq!(found(&[phrase], &text), [(0, 1, text.len())], "{text}");
            }
        }
    }
}
