//! What one message of the customer says about the answers before it.

use super::complaint::{complaint, objection, repetition};
use super::content::content;
use super::wish::human_request;
use crate::transcript::{Found, Item, Transcript};

/// How the customer reacts to what they were answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Says that it works or is solved, or praises and thanks for a finished action.
    Confirms,
    /// Thanks or praises.
    Thanks,
    /// Says goodbye, or wants nothing more.
    Closes,
    /// "Ok", "go ahead".
    Accepts,
    /// A stray letter or sign without a meaning.
    SaysNothing,
    /// Asks or tells something.
    Continues,
    /// Asks or tells something that does not fit a solved issue: trouble, a demand, a reproach, a "but".
    Objects,
    /// Says again what was said before.
    Repeats,
    /// Says that it is wrong or not solved, or mocks it.
    Rejects,
    /// Wants a person.
    AsksForHuman,
    /// Leaves without what they came for.
    GivesUp,
}

/// The reaction, and the phrase that shows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reacted {
    pub reaction: Reaction,
    pub phrase: Option<Found>,
}

impl Reacted {
    const CONTINUES: Self = Self { reaction: Reaction::Continues, phrase: None };

    /// The reaction of the customer's item at `position` of `transcript.customer`.
    pub(super) fn of(transcript: &Transcript<'_>, position: usize) -> Option<Self> {
        let index = *transcript.customer.get(position)?;
        let item = transcript.item(index)?;
        let answer = transcript.answer_before(index);
        if let Some(phrase) = human_request(item) {
            return Some(Self { reaction: Reaction::AsksForHuman, phrase: Some(phrase) });
        }
        let Some(answer) = answer else {
            return Some(Self::CONTINUES);
        };
        if says_nothing(item) {
            return Some(Self { reaction: Reaction::SaysNothing, phrase: None });
        }
        Some(
            complaint(item, answer)
                .or_else(|| repetition(transcript, position, item))
                .or_else(|| content(item, answer))
                .or_else(|| objection(item, answer))
                .unwrap_or(Self::CONTINUES),
        )
    }
}

/// Whether the item holds at most a stray letter or signs: it changes nothing.
fn says_nothing(item: &Item<'_>) -> bool {
    let reading = &item.reading;
    let letters =
        item.message.content.chars().filter(|character| character.is_alphanumeric()).take(2).count();
    letters < 2 && reading.questions == 0 && reading.exclamations == 0 && reading.found.is_empty()
}
