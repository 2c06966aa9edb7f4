//! Whether the customer asks for a person.

use crate::lexicon::Group;
use crate::transcript::{Found, Item};

/// A word for a person stands at most so many words behind the word of asking.
const WISH_REACH: usize = 4;

/// Bytes between two phrases beyond which they do not belong together.
const LONGEST_GAP: usize = 48;

/// At most so many phrases of a kind are looked at: bounds the work on long texts.
const FEW_PHRASES: usize = 8;

/// The words by which the item asks for a person.
pub(super) fn human_request(item: &Item<'_>) -> Option<Found> {
    let bare_word =
        || item.first(Group::HumanWord).filter(|_| item.reading.words <= 2 && !item.has(Group::Negated));
    item.first(Group::HumanRequest).or_else(|| wished_person(item)).or_else(bare_word)
}

/// "I want … a person": a word of asking with a word for a person close behind it in the same sentence.
fn wished_person(item: &Item<'_>) -> Option<Found> {
    // "No need to talk to anybody" holds the words of a wish.
    if item.reading.declines_a_person {
        return None;
    }
    let text = item.message.content.as_str();
    let found = &item.reading.found;
    found.iter().enumerate().filter(|(_, verb)| verb.group == Group::HumanVerb).take(FEW_PHRASES).find_map(
        |(at, verb)| {
            let refused =
                found.get(..at).unwrap_or_default().iter().rev().take(FEW_PHRASES).any(|before| {
                    before.group == Group::Negation && is_close(text, before.end, verb.start, 1)
                });
            let behind = found.get(at..).unwrap_or_default().iter();
            let noun = behind
                .filter(|noun| noun.group == Group::HumanNoun && noun.start >= verb.end)
                .take(FEW_PHRASES);
            noun.copied()
                .find(|noun| is_close(text, verb.end, noun.start, WISH_REACH))
                .filter(|_| !refused)
                .map(|noun| Found { group: Group::HumanRequest, start: verb.start, end: noun.end })
        },
    )
}

/// Whether at most `words` words of one sentence stand between two places.
fn is_close(text: &str, from: usize, to: usize, words: usize) -> bool {
    text.get(from..to).is_some_and(|gap| {
        gap.len() <= LONGEST_GAP
            && !gap.contains(['.', '!', '?', '\n'])
            && gap.split_whitespace().count() <= words
    })
}
