//! One text, read once: its words, its identifiers and the phrases in it with their meaning in place.

use super::own_text::{Quoted, touches};
use crate::lexicon::{Group, Hit, Lexicon, hash_word, is_unspaced};

/// A phrase with its meaning in place.
pub(crate) type Found = Hit;

/// At most so many different words of a text are compared with other texts: bounds the work on long texts.
const COMPARED_WORDS: usize = 64;
/// A negation turns what follows within so many words.
const NEGATION_REACH: usize = 3;
/// A condition voids success that follows within so many words.
const CONDITION_REACH: usize = 4;
/// Bytes between two phrases beyond which neither acts on the other.
const LONGEST_GAP: usize = 48;
/// Characters within which a sentence is expected to end: bounds the work on texts without full stops.
const LONGEST_SENTENCE: usize = 200;
/// An identifier has at least so many digits.
const IDENTIFIER_DIGITS: usize = 3;

/// What one text holds.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// Phrases, in order; negated success is [`Group::Negated`], void finds are left out.
    pub found: Vec<Found>,
    /// Words of its own text (a character counts as a word in scripts without spaces).
    pub words: u32,
    /// Question marks.
    pub questions: u32,
    /// Exclamation marks.
    pub exclamations: u32,
    /// Hashes of its content words, sorted.
    pub content_words: Vec<u64>,
    /// Hashes of order numbers, e-mail addresses and the like, sorted.
    pub identifiers: Vec<u64>,
    /// Hashes of its first words, for telling the language.
    pub first_words: Vec<u64>,
    /// Whether it talks to an evaluator.
    pub injected: bool,
    /// Whether the last sentence is a question.
    pub ends_with_question: bool,
}

impl Reading {
    /// Reads `text`.
    pub(crate) fn of(lexicon: &Lexicon, text: &str) -> Self {
        let quoted = Quoted::of(text);
        let mut reading = Self::default();
        reading.read_words(lexicon, text, &quoted);
        reading.read_identifiers(text, &quoted);
        let hits = lexicon.find(text);
        // An instruction to an evaluator is one wherever it stands, quoted or not.
        reading.injected = hits.iter().any(|hit| hit.group == Group::Injection);
        reading.found = meanings(text, &hits, &quoted);
        reading.ends_with_question = text.trim_end().ends_with(['?', '？']);
        reading
    }

    fn read_words(&mut self, lexicon: &Lexicon, text: &str, quoted: &Quoted) {
        let mut word_start = None;
        for (at, character) in text.char_indices().chain([(text.len(), ' ')]) {
            let in_word = character.is_alphanumeric() || character == '\'';
            if in_word && !is_unspaced(character) {
                word_start.get_or_insert(at);
                continue;
            }
            if let Some(start) = word_start.take() {
                self.add_word(lexicon, text.get(start..at).unwrap_or(""), start, quoted);
            }
            match character {
                '?' | '？' => self.questions += 1,
                '!' | '！' => self.exclamations += 1,
                _ if is_unspaced(character) && character.is_alphanumeric() => {
                    let end = at + character.len_utf8();
                    self.add_word(lexicon, text.get(at..end).unwrap_or(""), at, quoted);
                }
                _ => {}
            }
        }
        self.content_words.sort_unstable();
        self.content_words.dedup();
    }

    fn add_word(&mut self, lexicon: &Lexicon, word: &str, start: usize, quoted: &Quoted) {
        if touches(&quoted.earlier, start, start + 1) {
            return;
        }
        self.words += 1;
        let hash = hash_word(word.chars());
        if self.first_words.len() < COMPARED_WORDS {
            self.first_words.push(hash);
        }
        if self.content_words.len() < COMPARED_WORDS && !lexicon.words.is_stop_word(hash) {
            self.content_words.push(hash);
        }
    }

    fn read_identifiers(&mut self, text: &str, quoted: &Quoted) {
        let mut behind = 0;
        for chunk in text.split_whitespace() {
            let start = behind + text.get(behind..).and_then(|rest| rest.find(chunk)).unwrap_or(0);
            behind = start + chunk.len();
            let bare = chunk.trim_matches(|character: char| !character.is_alphanumeric());
            let digits = bare.bytes().filter(u8::is_ascii_digit).count();
            let is_address = bare.contains('@') && bare.contains('.');
            let is_identifier = digits >= IDENTIFIER_DIGITS || is_address;
            if is_identifier
                && self.identifiers.len() < COMPARED_WORDS
                && !touches(&quoted.earlier, start, start + 1)
            {
                self.identifiers.push(hash_word(bare.chars()));
            }
        }
        self.identifiers.sort_unstable();
        self.identifiers.dedup();
    }
}

/// Gives every hit its meaning in place, and leaves out those that mean nothing there.
fn meanings(text: &str, hits: &[Hit], quoted: &Quoted) -> Vec<Found> {
    let idioms: Vec<(usize, usize)> = ranges_of(hits, Group::Idiom);
    let benign: Vec<(usize, usize)> = ranges_of(hits, Group::StillBenign);
    let declines: Vec<(usize, usize)> = ranges_of(hits, Group::HumanDecline);
    let mut found = Vec::with_capacity(hits.len());
    for hit in hits {
        let (start, end) = (hit.start, hit.end);
        if touches(&quoted.earlier, start, end) {
            continue;
        }
        let void = match hit.group {
            Group::Idiom | Group::StillBenign | Group::HumanDecline => true,
            Group::Still => touches(&benign, start, end) || in_question(text, end),
            Group::HumanRequest | Group::HumanWord => touches(&declines, start, end),
            group => within(&idioms, start, end) && group != Group::Close && group != Group::Sarcasm,
        };
        if void {
            continue;
        }
        if let Some(group) = in_place(text, hits, *hit, quoted) {
            found.push(Found { group, ..*hit });
        }
    }
    found
}

/// The meaning of a hit among its neighbours; `None` when it means nothing there.
fn in_place(text: &str, hits: &[Hit], hit: Hit, quoted: &Quoted) -> Option<Group> {
    let can_be_negated = matches!(hit.group, Group::Praise | Group::Outcome | Group::Confirmation);
    if can_be_negated && acts_on(text, hits, hit, Group::Negation, NEGATION_REACH) {
        let asked = in_question(text, hit.end);
        return (!asked).then_some(Group::Negated);
    }
    if hit.group.is_favourable() && touches(&quoted.cited, hit.start, hit.end) {
        return None;
    }
    if matches!(hit.group, Group::Confirmation | Group::Praise)
        && (in_question(text, hit.end) || acts_on(text, hits, hit, Group::Conditional, CONDITION_REACH))
    {
        return None;
    }
    Some(hit.group)
}

/// Whether a phrase of `actor` stands at most `reach` words before `hit` in the same clause.
fn acts_on(text: &str, hits: &[Hit], hit: Hit, actor: Group, reach: usize) -> bool {
    let behind = hits.partition_point(|other| other.start < hit.start);
    hits.get(..behind)
        .unwrap_or_default()
        .iter()
        .rev()
        .take_while(|other| hit.start.saturating_sub(other.start) <= 2 * LONGEST_GAP)
        .filter(|other| other.group == actor && other.end <= hit.start)
        .filter_map(|other| text.get(other.end..hit.start))
        .any(|gap| {
            gap.len() <= LONGEST_GAP
                && !gap.contains(['.', ',', '!', '?', ';', '\n'])
                && gap.split_whitespace().count() <= reach
        })
}

/// Whether the sentence that goes on at `from` ends as a question, as far as [`LONGEST_SENTENCE`] shows.
fn in_question(text: &str, from: usize) -> bool {
    let rest = text.get(from..).unwrap_or("");
    let end = rest
        .char_indices()
        .take(LONGEST_SENTENCE)
        .find(|(_, character)| matches!(character, '.' | '!' | '?' | '\n' | '？' | '！' | '。'));
    end.is_some_and(|(_, character)| matches!(character, '?' | '？'))
}

fn ranges_of(hits: &[Hit], group: Group) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for hit in hits.iter().filter(|hit| hit.group == group) {
        match ranges.last_mut() {
            // Overlapping finds become one, so that the ranges are disjoint and in order.
            Some(last) if hit.start < last.1 => last.1 = last.1.max(hit.end),
            _ => ranges.push((hit.start, hit.end)),
        }
    }
    ranges
}

/// Whether `start..end` lies inside one of `ranges`.
fn within(ranges: &[(usize, usize)], start: usize, end: usize) -> bool {
    let first = ranges.partition_point(|range| range.1 <= start);
    ranges.get(first).is_some_and(|range| range.0 <= start && end <= range.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(text: &str) -> Vec<Group> {
        let reading = Reading::of(&Lexicon::builtin().unwrap(), text);
        reading.found.iter().map(|found| found.group).collect()
    }

    #[test]
    fn success_behind_a_negation_is_negated() {
        for text in
            ["it is NOT resolved", "that did not really fix it", "not very helpful", "it doesn't work"]
        {
            assert!(groups(text).contains(&Group::Negated), "{text}");
            assert!(!groups(text).contains(&Group::Praise), "{text}");
        }
    }

    #[test]
    fn hopes_questions_and_conditions_confirm_nothing() {
        for text in
            ["I hope that it works now", "is it working?", "if that worked I would tell", "is that great?"]
        {
            let found = groups(text);
            assert!(
                !found.contains(&Group::Confirmation) && !found.contains(&Group::Praise),
                "{text}: {found:?}"
            );
        }
    }

    #[test]
    fn quoted_and_cited_text_is_no_new_praise() {
        assert!(!groups("> Perfect, thanks\nno").contains(&Group::Thanks));
        assert!(!groups("you wrote \"it works now\" but it is dead").contains(&Group::Confirmation));
    }

    #[test]
    fn identifiers_are_order_numbers_and_addresses() {
        let lexicon = Lexicon::builtin().unwrap();
        let one = Reading::of(&lexicon, "Order #88123, email ann@example.com: broken in 2 places");
        let other = Reading::of(&lexicon, "it is 88123 and ann@example.com.");
        assert_eq!(one.identifiers.len(), 2);
        assert_eq!(one.identifiers, other.identifiers);
    }
}
