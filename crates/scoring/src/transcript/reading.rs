//! One text, read once: its words, its identifiers and the phrases in it with their meaning in place.

use super::excerpt::Excerpt;
use super::identifiers::each_identifier;
use super::own_text::{Quoted, touches};
use super::pieces::{Piece, each_piece};
use super::sentence_ends::SentenceEnds;
use crate::lexicon::{
    Group, GroupSet, Hit, LanguageNumber, Lexicon, Tally, hash_beginning, hash_word, is_unspaced,
};

/// A phrase with its meaning in place.
pub(crate) type Found = Hit;

/// At most so many different words of a text are compared with other texts: bounds the work on long texts.
const COMPARED_WORDS: usize = 64;
/// A text of so many bytes has about one of them.
const BYTES_PER_CONTENT_WORD: usize = 8;
/// Words and identifiers are told apart by so many characters: bounds the work on texts without spaces.
const COMPARED_CHARACTERS: usize = 256;
/// A negation turns what follows within so many words.
const NEGATION_REACH: usize = 3;
/// A condition voids success that follows within so many words.
const CONDITION_REACH: usize = 4;
/// Bytes between two phrases beyond which neither acts on the other.
const LONGEST_GAP: usize = 48;

/// Characters at which a clause ends, and with it what a negation or condition reaches.
const CLAUSE_ENDS: [char; 13] = ['.', ',', '!', '?', ';', '\n', '…', '。', '，', '！', '？', '；', '、'];

/// What one text holds.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// Phrases, in order; negated success is [`Group::Negated`], void finds are left out.
    pub found: Vec<Found>,
    /// The groups of `found`.
    pub groups: GroupSet,
    /// Words of its own text. In scripts without spaces two characters count as a word, as most words there have
    /// two.
    pub words: u32,
    /// Question marks.
    pub questions: u32,
    /// Exclamation marks.
    pub exclamations: u32,
    /// Hashes of its content words, sorted.
    pub content_words: Vec<u64>,
    /// Hashes of order numbers, e-mail addresses and the like, sorted.
    pub identifiers: Vec<u64>,
    /// How strongly its first words speak for each language.
    pub languages: Tally,
    /// Whether it says that no person is needed.
    pub declines_a_person: bool,
    /// Whether it talks to an evaluator.
    pub injected: bool,
    /// Whether the last sentence is a question.
    pub ends_with_question: bool,
    quoted: Quoted,
}

impl Reading {
    /// Reads the words of `text`, by which its language is told.
    pub(super) fn of_words(lexicon: &Lexicon, text: &str) -> Self {
        let content_words = Vec::with_capacity((text.len() / BYTES_PER_CONTENT_WORD).min(COMPARED_WORDS));
        let mut reading = Self { quoted: Quoted::of(text), content_words, ..Self::default() };
        reading.read_words(lexicon, text);
        reading.read_identifiers(text);
        reading.ends_with_question = text.trim_end().ends_with(asks);
        reading
    }

    /// Finds the phrases of an excerpt, which the words were read of, in English and in `language`. `hits` is room for
    /// them, which is used again from text to text.
    pub(super) fn find_phrases(
        &mut self,
        lexicon: &Lexicon,
        excerpt: &Excerpt<'_>,
        language: Option<LanguageNumber>,
        hits: &mut Vec<Hit>,
    ) {
        lexicon.find(&excerpt.text, language, hits);
        let hit: GroupSet = hits.iter().map(|hit| hit.group).collect();
        // An instruction to an evaluator is one wherever it stands, quoted or not.
        self.injected = hit.holds(Group::Injection);
        self.declines_a_person = hit.holds(Group::HumanDecline);
        self.found = meanings(&excerpt.text, hits, hit, &self.quoted);
        for found in &mut self.found {
            found.end = excerpt.original(found.end - 1) + 1;
            found.start = excerpt.original(found.start);
        }
        self.groups = self.found.iter().map(|found| found.group).collect();
    }

    /// Reads `text` in the language that it shows.
    #[cfg(test)]
    pub(crate) fn of(lexicon: &Lexicon, text: &str) -> Self {
        let mut reading = Self::of_words(lexicon, text);
        reading.find_phrases(lexicon, &Excerpt::of(text, usize::MAX), None, &mut Vec::new());
        reading
    }

    fn read_words(&mut self, lexicon: &Lexicon, text: &str) {
        let mut run = UnspacedRun::default();
        each_piece(text, |at, piece| {
            if let Piece::Unspaced(letter) = piece {
                let character = letter.chars().next().unwrap_or(' ');
                self.add_unspaced(run, character, at);
                run = UnspacedRun { length: run.length + 1, last: Some(character) };
                let behind = text.get(at + letter.len()..).and_then(|rest| rest.chars().next());
                // A particle before the mark asks the same question.
                self.questions += u32::from(asks(character) && !behind.is_some_and(asks));
                return;
            }
            run = UnspacedRun::default();
            match piece {
                Piece::Word(word) => self.add_word(lexicon, word, at),
                Piece::Mark('!' | '！') => self.exclamations += 1,
                Piece::Mark(mark) => self.questions += u32::from(asks(mark)),
                Piece::Unspaced(_) => {}
            }
        });
        self.content_words.sort_unstable();
        self.content_words.dedup();
    }

    fn add_word(&mut self, lexicon: &Lexicon, word: &str, start: usize) {
        if touches(&self.quoted.earlier, start, start + 1) {
            return;
        }
        self.words += 1;
        let is_first = self.words <= COMPARED_WORDS as u32;
        let is_compared = self.content_words.len() < COMPARED_WORDS;
        if !is_first && !is_compared {
            return;
        }
        let hash = hash_beginning(word, COMPARED_CHARACTERS);
        let facts = lexicon.words.facts(hash);
        if is_first {
            self.languages.add_word(facts);
        }
        if is_compared && !facts.is_stop_word {
            self.content_words.push(hash);
        }
    }

    /// Adds a character of a script without spaces; texts are compared by pairs of them.
    fn add_unspaced(&mut self, run: UnspacedRun, character: char, start: usize) {
        if touches(&self.quoted.earlier, start, start + 1) {
            return;
        }
        self.words += u32::from(run.length.is_multiple_of(2));
        if let Some(before) = run.last
            && self.content_words.len() < COMPARED_WORDS
        {
            self.content_words.push(hash_word([before, character].into_iter()));
        }
    }

    fn read_identifiers(&mut self, text: &str) {
        each_identifier(text, |start, identifier| {
            if !touches(&self.quoted.earlier, start, start + 1) {
                self.identifiers.push(hash_beginning(identifier, COMPARED_CHARACTERS));
            }
            self.identifiers.len() < COMPARED_WORDS
        });
        self.identifiers.sort_unstable();
        self.identifiers.dedup();
    }
}

/// The characters of a script without spaces that stand before one.
#[derive(Debug, Clone, Copy, Default)]
struct UnspacedRun {
    length: u32,
    last: Option<char>,
}

/// Whether the character makes a question of what stands before it; in Chinese a particle does so, too.
pub(super) const fn asks(character: char) -> bool {
    matches!(character, '?' | '？' | '吗' | '嗎')
}

/// What stands around a hit.
#[derive(Debug, Clone, Copy)]
struct Neighbours<'t> {
    text: &'t str,
    /// The hits that act on others, in order.
    acting: &'t [Hit],
    /// The groups of all hits of the text.
    groups: GroupSet,
}

/// Gives every hit its meaning in place, and leaves out those that mean nothing there. `groups` are those of `hits`.
fn meanings(text: &str, hits: &[Hit], groups: GroupSet, quoted: &Quoted) -> Vec<Found> {
    let ranges = |group| if groups.holds(group) { ranges_of(hits, group) } else { Vec::new() };
    let idioms: Vec<(usize, usize)> = ranges(Group::Idiom);
    let benign: Vec<(usize, usize)> = ranges(Group::StillBenign);
    let declines: Vec<(usize, usize)> = ranges(Group::HumanDecline);
    // "No problem, …": a word inside a fixed phrase does nothing to its neighbours.
    let acting: Vec<Hit> = hits
        .iter()
        .copied()
        .filter(|hit| hit.group.acts_on_neighbours() && !within(&idioms, hit.start, hit.end))
        .collect();
    let neighbours = Neighbours { text, acting: &acting, groups };
    let mut ends = SentenceEnds::of(text);
    let mut found = Vec::with_capacity(hits.len());
    for hit in hits {
        let (start, end) = (hit.start, hit.end);
        if touches(&quoted.earlier, start, end) {
            continue;
        }
        let void = match hit.group {
            Group::Idiom | Group::StillBenign | Group::HumanDecline => true,
            Group::Still => touches(&benign, start, end) || ends.in_question(end),
            Group::HumanRequest | Group::HumanWord | Group::HumanNoun => touches(&declines, start, end),
            group => within(&idioms, start, end) && !group.stands_in_idioms(),
        };
        if void {
            continue;
        }
        if let Some(group) = in_place(neighbours, *hit, quoted, &mut ends) {
            found.push(Found { group, ..*hit });
        }
    }
    found
}

/// The meaning of a hit among its neighbours; `None` when it means nothing there.
fn in_place(
    neighbours: Neighbours<'_>,
    hit: Hit,
    quoted: &Quoted,
    ends: &mut SentenceEnds<'_>,
) -> Option<Group> {
    let can_be_negated =
        matches!(hit.group, Group::Praise | Group::Outcome | Group::Confirmation | Group::Approval);
    if can_be_negated && neighbours.negate(hit) {
        let asked = ends.in_question(hit.end);
        return (!asked).then_some(Group::Negated);
    }
    if hit.group.is_favourable() && touches(&quoted.cited, hit.start, hit.end) {
        return None;
    }
    if matches!(hit.group, Group::Confirmation | Group::Approval | Group::Praise)
        && (ends.in_question(hit.end) || neighbours.act_on(hit, Group::Conditional, CONDITION_REACH))
    {
        return None;
    }
    Some(hit.group)
}

impl Neighbours<'_> {
    /// Whether a negation before the hit, or a word behind it, turns it round. Praise is left alone by what stands
    /// behind it: that is mostly the next thought ("super, wusste ich nicht").
    fn negate(self, hit: Hit) -> bool {
        self.act_on(hit, Group::Negation, NEGATION_REACH)
            || hit.group != Group::Praise
                && self.groups.holds(Group::NegationBehind)
                && self.negate_from_behind(hit)
    }

    /// Whether a phrase of `actor` stands at most `reach` words before `hit` in the same clause.
    fn act_on(self, hit: Hit, actor: Group, reach: usize) -> bool {
        if !self.groups.holds(actor) {
            return false;
        }
        let behind = self.acting.partition_point(|other| other.start < hit.start);
        self.acting
            .get(..behind)
            .unwrap_or_default()
            .iter()
            .rev()
            .take_while(|other| hit.start.saturating_sub(other.start) <= 2 * LONGEST_GAP)
            .filter(|other| other.group == actor && other.end <= hit.start)
            .filter_map(|other| Some((self.reach(*other, reach), self.text.get(other.end..hit.start)?)))
            .any(|(reach, gap)| is_within_reach(gap, reach))
    }

    /// Whether a word behind `hit` negates it: "funktioniert leider nicht".
    fn negate_from_behind(self, hit: Hit) -> bool {
        let behind = self.acting.partition_point(|other| other.start < hit.end);
        self.acting
            .get(behind..)
            .unwrap_or_default()
            .iter()
            .take_while(|other| other.start - hit.end <= LONGEST_GAP)
            .filter(|other| other.group == Group::NegationBehind)
            .filter_map(|other| self.text.get(hit.end..other.start))
            .any(|gap| is_within_reach(gap, NEGATION_REACH))
    }

    /// A "no" that begins the message answers a question: it negates only the very next word ("no help").
    fn reach(self, actor: Hit, reach: usize) -> usize {
        let answers =
            self.text.get(actor.start..actor.end).is_some_and(|word| word.eq_ignore_ascii_case("no"))
                && self.text.get(..actor.start).is_some_and(|before| before.trim().is_empty());
        if answers { 0 } else { reach }
    }
}

/// Whether two phrases with `gap` between them stand in one clause, with at most `reach` words between them.
fn is_within_reach(gap: &str, reach: usize) -> bool {
    let unspaced =
        if gap.is_ascii() { 0 } else { gap.chars().filter(|character| is_unspaced(*character)).count() };
    gap.len() <= LONGEST_GAP
        && !gap.contains(CLAUSE_ENDS)
        && gap.split_whitespace().count().max(unspaced.div_ceil(2)) <= reach
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
