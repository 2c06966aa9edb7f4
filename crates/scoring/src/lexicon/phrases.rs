//! Finds every phrase in a text: at each place where one may begin, the text is looked up in a sorted list of all.
//!
//! Of two phrases with which a text begins, the longer one begins with the shorter one. So all of them are known by the
//! longest, and that is the last one in the list that does not come behind the text, or one with which that one begins.
//! The list is a tenth of the size of a tree or an automaton of all phrases, and stays in the processor's cache.

use std::cmp::Ordering;
use std::ops::Range;

use super::beginnings::{Beginnings, Window, first_bytes};
use super::is_ascii_letter_or_digit;

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
    /// The phrases in lower case, in order, each once, one behind the other.
    text: Vec<u8>,
    /// Where they stand in it.
    entries: Vec<Entry>,
    /// For each entry, what it is sorted by first.
    keys: Vec<u128>,
    /// How many entries begin with a byte below this one.
    below: Vec<usize>,
    /// The numbers of the phrases, in the order of the entries.
    numbers: Vec<usize>,
    beginnings: Beginnings,
}

/// A phrase of the list.
#[derive(Debug, Clone)]
struct Entry {
    text: Range<usize>,
    /// The numbers under which it was given.
    numbers: Range<usize>,
    /// The longest other entry with which it begins.
    beginning: Option<usize>,
}

impl Phrases {
    /// Sorts `phrases`; their numbers are their places.
    pub(super) fn of(phrases: &[String]) -> Self {
        let mut sorted: Vec<(Vec<u8>, usize)> = phrases
            .iter()
            .enumerate()
            .map(|(number, phrase)| (phrase.to_ascii_lowercase().into_bytes(), number))
            .collect();
        sorted.sort_unstable();
        let beginnings = Beginnings::of(phrases);
        let mut list =
            Self { text: vec![], entries: vec![], keys: vec![], below: vec![], numbers: vec![], beginnings };
        // The last entry, what it begins with, what that begins with, and so on: the innermost last.
        let mut open: Vec<usize> = Vec::new();
        for (text, number) in sorted {
            list.numbers.push(number);
            if let Some(last) = list.entries.last_mut()
                && list.text.get(last.text.clone()) == Some(text.as_slice())
            {
                last.numbers.end += 1;
                continue;
            }
            while open.pop_if(|entry| !text.starts_with(list.text_of(*entry))).is_some() {}
            let beginning = open.last().copied();
            open.push(list.entries.len());
            let start = list.text.len();
            list.keys.push(key_of(&text));
            list.text.extend(text);
            let numbers = list.numbers.len() - 1..list.numbers.len();
            list.entries.push(Entry { text: start..list.text.len(), numbers, beginning });
        }
        list.below = (0..=256).map(|first| list.keys.partition_point(|key| first_of(*key) < first)).collect();
        list
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
                let longest = self.longest(bytes.get(start..).unwrap_or_default());
                self.report(longest, start, &mut found);
            }
        }
    }

    /// The longest entry with which `rest` begins.
    fn longest(&self, rest: &[u8]) -> Option<usize> {
        let key = key_of(rest);
        let (low, high) = (*self.below.get(first_of(key))?, *self.below.get(first_of(key) + 1)?);
        let from = low + self.keys.get(low..high)?.partition_point(|other| *other < key);
        let same = self.keys.get(from..)?.iter().take_while(|other| **other == key).count();
        let not_behind = self.entries.get(from..from + same)?.partition_point(|entry| {
            compare(self.text.get(entry.text.clone()).unwrap_or_default(), rest).is_le()
        });
        let mut candidate = (from + not_behind).checked_sub(1);
        while let Some(entry) = candidate {
            let text = self.text_of(entry);
            if rest.get(..text.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(text)) {
                return candidate;
            }
            candidate = self.entries.get(entry)?.beginning;
        }
        None
    }

    /// Reports an entry that stands at `start`, behind all with which it begins.
    fn report(&self, entry: Option<usize>, start: usize, found: &mut impl FnMut(Match)) {
        let Some(entry) = entry.and_then(|entry| self.entries.get(entry)) else { return };
        self.report(entry.beginning, start, found);
        for phrase in self.numbers.get(entry.numbers.clone()).unwrap_or_default() {
            found(Match { phrase: *phrase, start, end: start + entry.text.len() });
        }
    }

    fn text_of(&self, entry: usize) -> &[u8] {
        self.entries.get(entry).and_then(|entry| self.text.get(entry.text.clone())).unwrap_or_default()
    }
}

/// The first sixteen bytes of a text in lower case, with zeros behind its end, as a number: keys sort as texts do, as far as
/// they reach, and few phrases have the same.
fn key_of(text: &[u8]) -> u128 {
    u128::from_be_bytes(first_bytes(text).map(|byte: u8| byte.to_ascii_lowercase()))
}

/// The first byte of a key's text.
fn first_of(key: u128) -> usize {
    (key >> 120) as usize
}

/// Where a phrase in lower case stands to the text; equal where the text begins with it.
fn compare(phrase: &[u8], text: &[u8]) -> Ordering {
    phrase.iter().copied().cmp(text.iter().take(phrase.len()).map(u8::to_ascii_lowercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(phrases: &[&str], text: &str) -> Vec<(usize, usize, usize)> {
        let phrases: Vec<String> = phrases.iter().map(|phrase| (*phrase).to_owned()).collect();
        let mut found = Vec::new();
        Phrases::of(&phrases).find(text, |Match { phrase, start, end }| found.push((phrase, start, end)));
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

    #[test]
    fn every_phrase_with_which_another_begins_is_found_by_itself_too() {
        let phrases = ["not", "not at all", "no", "nothing", "not at", "no", "nota"];
        assert_eq!(found(&phrases, "Not at any"), [(2, 0, 2), (5, 0, 2), (0, 0, 3), (4, 0, 6)]);
        assert_eq!(found(&phrases, "nothing else"), [(2, 0, 2), (5, 0, 2), (0, 0, 3), (3, 0, 7)]);
        assert_eq!(found(&phrases, "no\0t"), [(2, 0, 2), (5, 0, 2)]);
        assert_eq!(found(&phrases, "nn"), []);
    }

    #[test]
    fn what_is_found_is_what_looking_for_each_phrase_finds() {
        let phrases = ["a b", "a", "ab", "a bc d", "b c", "bc", "c", "abc abc abc", "abc abc", "é a"];
        for text in ["a bc d abc abc ab", "ABC ABC ABCD", "é a b", "", "b c a b é ab a b"] {
            let folded = text.to_lowercase();
            let mut expected = Vec::new();
            for start in 0..text.len() {
                let within =
                    start > 0 && text.as_bytes()[start - 1..=start].iter().all(u8::is_ascii_alphanumeric);
                let mut here: Vec<(usize, &str)> = phrases.iter().copied().enumerate().collect();
                here.retain(|(_, phrase)| {
                    !within && folded.as_bytes()[start..].starts_with(phrase.as_bytes())
                });
                here.sort_by_key(|(number, phrase)| (phrase.len(), *number));
                expected.extend(here.iter().map(|(number, phrase)| (*number, start, start + phrase.len())));
            }
            assert_eq!(found(&phrases, text), expected, "{text}");
        }
    }
}
