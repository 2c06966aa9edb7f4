//! One text, read once: its words, its identifiers and the phrases in it with their meaning in place.

use super::identifiers::each_identifier;
use super::own_text::{Quoted, touches};
use super::pieces::{Piece, each_piece};
use super::sentence_ends::SentenceEnds;
use crate::lexicon::{Group, GroupSet, Hit, Lexicon, hash_word};

/// A phrase with its meaning in place.
pub(crate) type Found = Hit;

/// At most so many different words of a text are compared with other texts: bounds the work on long texts.
const COMPARED_WORDS: usize = 64;
/// Words and identifiers are told apart by so many characters: bounds the work on texts without spaces.
const COMPARED_CHARACTERS: usize = 256;
/// A negation turns what follows within so many words.
const NEGATION_REACH: usize = 3;
/// A condition voids success that follows within so many words.
const CONDITION_REACH: usize = 4;
/// Bytes between two phrases beyond which neither acts on the other.
const LONGEST_GAP: usize = 48;

/// What one text holds.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// Phrases, in order; negated success is [`Group::Negated`], void finds are left out.
    pub found: Vec<Found>,
    /// The groups of `found`.
    pub groups: GroupSet,
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
        reading.groups = reading.found.iter().map(|found| found.group).collect();
        reading.ends_with_question = text.trim_end().ends_with(['?', '？']);
        reading
    }

    fn read_words(&mut self, lexicon: &Lexicon, text: &str, quoted: &Quoted) {
        each_piece(text, |at, piece| match piece {
            Piece::Word(word) | Piece::Unspaced(word) => self.add_word(lexicon, word, at, quoted),
            Piece::Mark('?' | '？') => self.questions += 1,
            Piece::Mark('!' | '！') => self.exclamations += 1,
            Piece::Mark(_) => {}
        });
        self.content_words.sort_unstable();
        self.content_words.dedup();
    }

    fn add_word(&mut self, lexicon: &Lexicon, word: &str, start: usize, quoted: &Quoted) {
        if touches(&quoted.earlier, start, start + 1) {
            return;
        }
        self.words += 1;
        let is_first = self.first_words.len() < COMPARED_WORDS;
        let is_compared = self.content_words.len() < COMPARED_WORDS;
        if !is_first && !is_compared {
            return;
        }
        let hash = hash_word(word.chars().take(COMPARED_CHARACTERS));
        if is_first {
            self.first_words.push(hash);
        }
        if is_compared && !lexicon.words.is_stop_word(hash) {
            self.content_words.push(hash);
        }
    }

    fn read_identifiers(&mut self, text: &str, quoted: &Quoted) {
        each_identifier(text, |start, identifier| {
            if !touches(&quoted.earlier, start, start + 1) {
                self.identifiers.push(hash_word(identifier.chars().take(COMPARED_CHARACTERS)));
            }
            self.identifiers.len() < COMPARED_WORDS
        });
        self.identifiers.sort_unstable();
        self.identifiers.dedup();
    }
}

/// What stands before a hit.
#[derive(Debug, Clone, Copy)]
struct Before<'t> {
    text: &'t str,
    /// The hits before it, in order.
    hits: &'t [Hit],
    /// The groups of all hits of the text.
    groups: GroupSet,
}

/// Gives every hit its meaning in place, and leaves out those that mean nothing there.
fn meanings(text: &str, hits: &[Hit], quoted: &Quoted) -> Vec<Found> {
    let idioms: Vec<(usize, usize)> = ranges_of(hits, Group::Idiom);
    let benign: Vec<(usize, usize)> = ranges_of(hits, Group::StillBenign);
    let declines: Vec<(usize, usize)> = ranges_of(hits, Group::HumanDecline);
    let groups = hits.iter().map(|hit| hit.group).collect();
    let mut ends = SentenceEnds::of(text);
    let mut found = Vec::with_capacity(hits.len());
    for (index, hit) in hits.iter().enumerate() {
        let (start, end) = (hit.start, hit.end);
        if touches(&quoted.earlier, start, end) {
            continue;
        }
        let void = match hit.group {
            Group::Idiom | Group::StillBenign | Group::HumanDecline => true,
            Group::Still => touches(&benign, start, end) || ends.in_question(end),
            Group::HumanRequest | Group::HumanWord => touches(&declines, start, end),
            group => within(&idioms, start, end) && group != Group::Close && group != Group::Sarcasm,
        };
        if void {
            continue;
        }
        let before = Before { text, hits: hits.get(..index).unwrap_or_default(), groups };
        if let Some(group) = in_place(before, *hit, quoted, &mut ends) {
            found.push(Found { group, ..*hit });
        }
    }
    found
}

/// The meaning of a hit among its neighbours; `None` when it means nothing there.
fn in_place(before: Before<'_>, hit: Hit, quoted: &Quoted, ends: &mut SentenceEnds<'_>) -> Option<Group> {
    let can_be_negated = matches!(hit.group, Group::Praise | Group::Outcome | Group::Confirmation | Group::Approval);
    if can_be_negated && before.acts_on(hit, Group::Negation, NEGATION_REACH) {
        let asked = ends.in_question(hit.end);
        return (!asked).then_some(Group::Negated);
    }
    if hit.group.is_favourable() && touches(&quoted.cited, hit.start, hit.end) {
        return None;
    }
    if matches!(hit.group, Group::Confirmation | Group::Approval | Group::Praise)
        && (ends.in_question(hit.end) || before.acts_on(hit, Group::Conditional, CONDITION_REACH))
    {
        return None;
    }
    Some(hit.group)
}

impl Before<'_> {
    /// Whether a phrase of `actor` stands at most `reach` words before `hit` in the same clause.
    fn acts_on(self, hit: Hit, actor: Group, reach: usize) -> bool {
        self.groups.holds(actor)
            && self
                .hits
                .iter()
                .rev()
                .take_while(|other| hit.start.saturating_sub(other.start) <= 2 * LONGEST_GAP)
                .filter(|other| other.group == actor && other.end <= hit.start)
                .filter_map(|other| Some((self.reach(*other, reach), self.text.get(other.end..hit.start)?)))
                .any(|(reach, gap)| {
                    gap.len() <= LONGEST_GAP
                        && !gap.contains(['.', ',', '!', '?', ';', '\n'])
                        && gap.split_whitespace().count() <= reach
                })
    }
}

impl Before<'_> {
    /// A "no" that begins the message answers a question: it negates only the very next word ("no help").
    fn reach(self, actor: Hit, reach: usize) -> usize {
        let answers = self.text.get(actor.start..actor.end).is_some_and(|word| word.eq_ignore_ascii_case("no"))
            && self.text.get(..actor.start).is_some_and(|before| before.trim().is_empty());
        if answers { 0 } else { reach }
    }
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
