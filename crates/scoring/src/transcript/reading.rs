//! One text, read once: its words, its identifiers and the phrases in it with their meaning in place.

use super::own_text::{Quoted, touches};
use crate::lexicon::{Group, Hit, LanguageNumber, Lexicon, Tally, hash_word, is_unspaced};

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
/// Characters at which a clause ends, and with it what a negation or condition reaches.
const CLAUSE_ENDS: [char; 13] = ['.', ',', '!', '?', ';', '\n', '…', '。', '，', '！', '？', '；', '、'];
/// Characters within which a sentence is expected to end: bounds the work on texts without full stops.
const LONGEST_SENTENCE: usize = 200;
/// An identifier has at least so many digits.
const IDENTIFIER_DIGITS: usize = 3;

/// What one text holds.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// Phrases, in order; negated success is [`Group::Negated`], void finds are left out.
    pub found: Vec<Found>,
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
    /// Whether it talks to an evaluator.
    pub injected: bool,
    /// Whether the last sentence is a question.
    pub ends_with_question: bool,
    quoted: Quoted,
}

impl Reading {
    /// Reads the words of `text`, by which its language is told.
    pub(crate) fn of_words(lexicon: &Lexicon, text: &str) -> Self {
        let mut reading = Self { quoted: Quoted::of(text), ..Self::default() };
        reading.read_words(lexicon, text);
        reading.read_identifiers(text);
        reading.ends_with_question = text.trim_end().ends_with(asks);
        reading
    }

    /// Finds the phrases of `text`, which the words were read of, in English and in `language`.
    pub(crate) fn find_phrases(&mut self, lexicon: &Lexicon, text: &str, language: Option<LanguageNumber>) {
        let hits = lexicon.find(text, language);
        // An instruction to an evaluator is one wherever it stands, quoted or not.
        self.injected = hits.iter().any(|hit| hit.group == Group::Injection);
        self.found = meanings(text, &hits, &self.quoted);
    }

    /// Reads `text` in the language that it shows.
    #[cfg(test)]
    pub(crate) fn of(lexicon: &Lexicon, text: &str) -> Self {
        let mut reading = Self::of_words(lexicon, text);
        reading.find_phrases(lexicon, text, None);
        reading
    }

    fn read_words(&mut self, lexicon: &Lexicon, text: &str) {
        let mut word_start = None;
        let mut run = UnspacedRun::default();
        for (at, character) in text.char_indices().chain([(text.len(), ' ')]) {
            let unspaced = is_unspaced(character);
            if !unspaced && (character.is_alphanumeric() || character == '\'') {
                word_start.get_or_insert(at);
                continue;
            }
            if let Some(start) = word_start.take() {
                self.add_word(lexicon, text.get(start..at).unwrap_or(""), start);
            }
            if unspaced && character.is_alphanumeric() {
                self.add_unspaced(run, character, at);
                run = UnspacedRun { length: run.length + 1, last: Some(character) };
            } else {
                run = UnspacedRun::default();
            }
            match character {
                '!' | '！' => self.exclamations += 1,
                '吗' | '嗎' if text.get(at..).is_some_and(|rest| rest.chars().nth(1).is_some_and(asks)) => {
                }
                _ if asks(character) => self.questions += 1,
                _ => {}
            }
        }
        self.content_words.sort_unstable();
        self.content_words.dedup();
    }

    fn add_word(&mut self, lexicon: &Lexicon, word: &str, start: usize) {
        if touches(&self.quoted.earlier, start, start + 1) {
            return;
        }
        let hash = hash_word(word.chars());
        let facts = lexicon.words.facts(hash);
        if self.words < COMPARED_WORDS as u32 {
            self.languages.add_word(facts);
        }
        self.words += 1;
        if self.content_words.len() < COMPARED_WORDS && !facts.is_stop_word {
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
                && !touches(&self.quoted.earlier, start, start + 1)
            {
                self.identifiers.push(hash_word(bare.chars()));
            }
        }
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
const fn asks(character: char) -> bool {
    matches!(character, '?' | '？' | '吗' | '嗎')
}

/// Gives every hit its meaning in place, and leaves out those that mean nothing there.
fn meanings(text: &str, hits: &[Hit], quoted: &Quoted) -> Vec<Found> {
    let idioms: Vec<(usize, usize)> = ranges_of(hits, Group::Idiom);
    let benign: Vec<(usize, usize)> = ranges_of(hits, Group::StillBenign);
    let declines: Vec<(usize, usize)> = ranges_of(hits, Group::HumanDecline);
    // "No problem, …": a word inside a fixed phrase does nothing to its neighbours.
    let acting: Vec<Hit> = hits
        .iter()
        .copied()
        .filter(|hit| hit.group.acts_on_neighbours() && !within(&idioms, hit.start, hit.end))
        .collect();
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
        if let Some(group) = in_place(text, &acting, *hit, quoted) {
            found.push(Found { group, ..*hit });
        }
    }
    found
}

/// The meaning of a hit among its neighbours; `None` when it means nothing there.
fn in_place(text: &str, acting: &[Hit], hit: Hit, quoted: &Quoted) -> Option<Group> {
    let can_be_negated = matches!(hit.group, Group::Praise | Group::Outcome | Group::Confirmation);
    let is_negated = || {
        acts_on(text, acting, hit, Group::Negation, NEGATION_REACH)
            || hit.group != Group::Praise && is_negated_behind(text, acting, hit)
    };
    if can_be_negated && is_negated() {
        let asked = in_question(text, hit.end);
        return (!asked).then_some(Group::Negated);
    }
    if hit.group.is_favourable() && touches(&quoted.cited, hit.start, hit.end) {
        return None;
    }
    if matches!(hit.group, Group::Confirmation | Group::Praise)
        && (in_question(text, hit.end) || acts_on(text, acting, hit, Group::Conditional, CONDITION_REACH))
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
        .any(|gap| is_within_reach(gap, reach))
}

/// Whether a word behind `hit` negates it: "funktioniert leider nicht". Praise is left alone: what stands behind
/// it is mostly the next thought ("super, wusste ich nicht").
fn is_negated_behind(text: &str, hits: &[Hit], hit: Hit) -> bool {
    let behind = hits.partition_point(|other| other.start < hit.end);
    hits.get(behind..)
        .unwrap_or_default()
        .iter()
        .take_while(|other| other.start - hit.end <= LONGEST_GAP)
        .filter(|other| other.group == Group::NegationBehind)
        .filter_map(|other| text.get(hit.end..other.start))
        .any(|gap| is_within_reach(gap, NEGATION_REACH))
}

/// Whether two phrases with `gap` between them stand in one clause, with at most `reach` words between them.
fn is_within_reach(gap: &str, reach: usize) -> bool {
    let unspaced =
        if gap.is_ascii() { 0 } else { gap.chars().filter(|character| is_unspaced(*character)).count() };
    gap.len() <= LONGEST_GAP
        && !gap.contains(CLAUSE_ENDS)
        && gap.split_whitespace().count().max(unspaced.div_ceil(2)) <= reach
}

/// Whether the sentence that goes on at `from` ends as a question, as far as [`LONGEST_SENTENCE`] shows.
fn in_question(text: &str, from: usize) -> bool {
    let rest = text.get(from..).unwrap_or("");
    let end = rest
        .char_indices()
        .take(LONGEST_SENTENCE)
        .find(|(_, character)| matches!(character, '.' | '!' | '\n' | '！' | '。') || asks(*character));
    end.is_some_and(|(_, character)| asks(character))
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
