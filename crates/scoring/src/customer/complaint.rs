//! Words by which the customer rejects, mocks, repeats or objects.

use super::content::{confirmation, success_now};
use super::question::{Question, leading_no, leading_yes, question_of};
use super::reaction::{Reacted, Reaction};
use crate::lexicon::Group;
use crate::transcript::{Found, Item, Transcript};

/// A customer repeats themselves when two messages share more than this part of their words.
const SAME_MESSAGE: f64 = 0.7;

/// Shorter messages ("yes please") repeat by nature.
const REPEATABLE_WORDS: usize = 3;

/// Courtesy is short; a longer message that thanks somewhere says more.
const COURTEOUS_WORDS: u32 = 14;
/// Mockery is short; a longer message that thanks somewhere tells a story.
const MOCKING_WORDS: u32 = 24;

pub(super) fn complaint(item: &Item<'_>, answer: &Item<'_>) -> Option<Reacted> {
    let rejects = |phrase| Some(Reacted { reaction: Reaction::Rejects, phrase: Some(phrase) });
    if let Some(phrase) = sarcasm(item) {
        return rejects(phrase);
    }
    if let Some(phrase) = item.first(Group::GiveUp) {
        return Some(Reacted { reaction: Reaction::GivesUp, phrase: Some(phrase) });
    }
    let last_of =
        |groups: &[Group]| item.reading.found.iter().copied().rfind(|found| groups.contains(&found.group));
    if let Some(phrase) = last_of(&[Group::Rejection, Group::Negated, Group::Still]) {
        // "The first one failed, but now it works": the later word holds.
        let confirmed_later = last_of(&[Group::Confirmation])
            .into_iter()
            .chain(success_now(item))
            .any(|confirmed| confirmed.start > phrase.start);
        if !confirmed_later {
            return rejects(phrase);
        }
    }
    if let Some(phrase) = annoyance(item).or_else(|| trouble(item, answer)).or_else(|| denial(item, answer)) {
        return rejects(phrase);
    }
    if question_of(answer) == Question::AboutTheTrouble {
        return leading_yes(item).and_then(rejects);
    }
    let leading_no = leading_no(item)?;
    match question_of(answer) {
        Question::AboutTheTrouble => None,
        Question::AboutTheOutcome => rejects(leading_no),
        Question::AnythingElse | Question::Offer | Question::Other => None,
        Question::None => rejects(leading_no),
    }
}

/// Something that does not fit a solved issue, though it says in no words that the answer is wrong. Told to a
/// question it would be information.
pub(super) fn objection(item: &Item<'_>, answer: &Item<'_>) -> Option<Reacted> {
    let told_when_asked = matches!(question_of(answer), Question::Other | Question::Offer);
    let groups: &[Group] = if told_when_asked {
        &[Group::Accusation, Group::Demand, Group::Frustration]
    } else {
        &[
            Group::Accusation,
            Group::Demand,
            Group::Frustration,
            Group::Trouble,
            Group::Contrast,
            Group::Disagree,
            Group::Repetition,
            Group::Urgency,
            Group::Negation,
        ]
    };
    let phrase = item.reading.found.iter().copied().find(|found| groups.contains(&found.group));
    let shouts = item.reading.exclamations > 1 || item.reading.questions > 2;
    (phrase.is_some() || shouts).then_some(Reacted { reaction: Reaction::Objects, phrase })
}

/// Annoyance without a friendly word.
fn annoyance(item: &Item<'_>) -> Option<Found> {
    let friendly = item.has_any(&[Group::Thanks, Group::Praise, Group::Confirmation]);
    item.first(Group::Frustration).filter(|_| !friendly)
}

/// Trouble after an answer that asked nothing: told to a question it would be information.
fn trouble(item: &Item<'_>, answer: &Item<'_>) -> Option<Found> {
    let helped = item.has_any(&[Group::Thanks, Group::Confirmation]) || item.reading.questions > 0;
    item.first(Group::Trouble).filter(|_| !helped && question_of(answer) != Question::Other)
}

/// "It did not", when asked whether it helped.
fn denial(item: &Item<'_>, answer: &Item<'_>) -> Option<Found> {
    let asked = question_of(answer) == Question::AboutTheOutcome;
    item.first(Group::Negation).filter(|_| asked && !item.has(Group::Confirmation))
}

/// Thanking twice repeats nothing that matters.
pub(super) fn repetition(transcript: &Transcript<'_>, position: usize, item: &Item<'_>) -> Option<Reacted> {
    let courteous = item.has_any(&[Group::Thanks, Group::Close, Group::Praise])
        && item.reading.questions == 0
        && item.reading.words <= COURTEOUS_WORDS;
    (!courteous && repeats_earlier(transcript, position, SAME_MESSAGE))
        .then_some(Reacted { reaction: Reaction::Repeats, phrase: None })
}

/// Whether the customer's item at `position` says what an earlier one said.
pub(crate) fn repeats_earlier(transcript: &Transcript<'_>, position: usize, share: f64) -> bool {
    let item = transcript.customer.get(position).and_then(|index| transcript.item(*index));
    item.is_some_and(|item| item.reading.content_words.len() >= REPEATABLE_WORDS)
        && transcript.customer_likeness.get(position).is_some_and(|likeness| *likeness > share)
}

/// Sarcasm, sure or beside a complaint.
pub(crate) fn sarcasm(item: &Item<'_>) -> Option<Found> {
    let beside_complaint = || {
        let complains = item.has_any(&[
            Group::Negated,
            Group::Rejection,
            Group::Still,
            Group::Frustration,
            Group::Repetition,
        ]);
        item.first(Group::SarcasmWeak).filter(|_| complains)
    };
    item.first(Group::Sarcasm).or_else(beside_complaint).or_else(|| mockery(item))
}

/// Thanks or praise beside words that nobody uses who means it: a cue of mockery next to something negative, or two
/// cues in a short message.
fn mockery(item: &Item<'_>) -> Option<Found> {
    let cue = item.first(Group::SarcasmCue)?;
    let flatters = item.has_any(&[Group::Praise, Group::Thanks, Group::Approval, Group::SarcasmWeak]);
    let honest = || item.has(Group::Close) || confirmation(item).is_some();
    if !flatters || item.reading.words > MOCKING_WORDS || honest() {
        return None;
    }
    let bitter = item.has_any(&[
        Group::Negation,
        Group::Negated,
        Group::Frustration,
        Group::Trouble,
        Group::Repetition,
        Group::Accusation,
        Group::Rejection,
        Group::Urgency,
        Group::ServiceFailure,
        Group::Still,
    ]);
    (bitter || item.count(Group::SarcasmCue) > 1).then_some(cue)
}
