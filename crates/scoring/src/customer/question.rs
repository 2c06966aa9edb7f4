//! What the answering side asked last, and a plain "yes" or "no" to it.

use crate::lexicon::Group;
use crate::transcript::{Found, Item};

/// What the answering side asked last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    None,
    AboutTheOutcome,
    /// "Are you still having trouble?"
    AboutTheTrouble,
    AnythingElse,
    /// "Shall I …?"
    Offer,
    Other,
}

/// The last question in `answer`.
pub(crate) fn question_of(answer: &Item<'_>) -> Question {
    let last =
        answer.reading.found.iter().rev().find(|found| {
            matches!(found.group, Group::AsksOutcome | Group::AsksTrouble | Group::AnythingElse)
        });
    match last.map(|found| found.group) {
        Some(Group::AsksOutcome) if answer.reading.questions > 0 => Question::AboutTheOutcome,
        Some(Group::AsksTrouble) if answer.reading.questions > 0 => Question::AboutTheTrouble,
        Some(Group::AnythingElse) => Question::AnythingElse,
        _ if answer.reading.questions > 0 && answer.has(Group::Offer) => Question::Offer,
        _ if answer.reading.questions > 0 => Question::Other,
        _ => Question::None,
    }
}

/// A "no" with which the message begins.
pub(crate) fn leading_no(item: &Item<'_>) -> Option<Found> {
    leading(item, Group::PlainNo)
}

pub(super) fn leading_yes(item: &Item<'_>) -> Option<Found> {
    leading(item, Group::PlainYes)
}

fn leading(item: &Item<'_>, group: Group) -> Option<Found> {
    let text = item.message.content.as_str();
    let begin =
        text.len() - text.trim_start_matches(|first: char| first.is_whitespace() || first == '¡').len();
    item.first(group).filter(|found| found.start == begin)
}
