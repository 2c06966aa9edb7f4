//! The passage from AI to human: whether one was asked for, promised or made, and how smooth it was.
//!
//! By rules, because no public labels of smoothness exist. Asked for or promised and not made counts as the worst
//! of all: otherwise refusing to hand over would be rewarded.

use assay_contracts::evaluation::{Handoff, HandoffRequester, HandoffState};
use assay_contracts::time::Timestamp;

use crate::customer::{CustomerCourse, EndState, Reaction};
use crate::effort::EffortFindings;
use crate::lexicon::Group;
use crate::transcript::{Found, Item, Role, Transcript};

/// Waits for a person beyond these cost points: milliseconds, points.
const WAITS: [(i64, f64); 3] = [(24 * 3_600_000, 1.2), (3_600_000, 0.7), (15 * 60_000, 0.3)];
/// A completed handoff is better than none at all, however rough.
const WORST_COMPLETED: f64 = 1.5;

/// One thing that cost points.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deduction {
    /// Code of the signal.
    pub code: &'static str,
    /// Points lost; positive.
    pub points: f64,
    /// The item that shows it.
    pub item: usize,
}

/// What was found out about the handoff.
#[derive(Debug)]
pub(crate) struct HandoffFindings {
    /// For the evaluation.
    pub handoff: Handoff,
    /// 1.0–5.0.
    pub score: f64,
    /// What cost points, in order.
    pub deductions: Vec<Deduction>,
    /// Whether a handoff was asked for, promised or made.
    pub applicable: bool,
    /// The item that asked for, promised or made the handoff first, and the words.
    pub opened_by: Option<(usize, Option<Found>)>,
    /// Whether the AI or the system said that a person takes over.
    pub promised: bool,
}

/// Something that calls for a person.
#[derive(Debug, Clone, Copy)]
struct Call {
    item: usize,
    by: HandoffRequester,
    phrase: Option<Found>,
}

impl HandoffFindings {
    /// Follows the calls for a person and the person's first message.
    pub(crate) fn of(transcript: &Transcript<'_>, course: &CustomerCourse, effort: &EffortFindings) -> Self {
        let mut calls = calls(transcript, course);
        if let Some(withdrawn) = withdrawn_at(transcript, course) {
            calls.retain(|call| call.by != HandoffRequester::Customer || call.item > withdrawn);
        }
        let takeover = takeover(transcript);
        let offer = first_answer_with(transcript, Group::TransferOffer);
        let unanswered = calls.iter().rev().find(|call| !human_after(transcript, call.item));
        let state = match (takeover, unanswered, offer) {
            (_, Some(_), _) => HandoffState::RequestedNotCompleted,
            (Some(_), None, _) => HandoffState::Completed,
            (None, None, Some(_)) => HandoffState::OfferedNotTaken,
            (None, None, None) => HandoffState::None,
        };
        let opened_by = calls
            .first()
            .map(|call| (call.item, call.phrase))
            .or_else(|| takeover.map(|item| (item, None)))
            .or_else(|| offer.map(|(item, phrase)| (item, Some(phrase))));
        let requested_by = match (calls.first(), state) {
            (Some(call), _) => Some(call.by),
            (None, HandoffState::Completed) => Some(HandoffRequester::System),
            (None, HandoffState::OfferedNotTaken) => Some(HandoffRequester::Ai),
            (None, _) => None,
        };
        let at = |item: usize| transcript.item(item).map(|item| item.message.timestamp);
        let handoff = Handoff {
            state,
            requested_by,
            at: opened_by.and_then(|(item, _)| at(item)),
            first_human_reply_at: takeover.and_then(at),
        };
        let deductions = deductions(transcript, effort, &calls, takeover, state);
        let lost: f64 = deductions.iter().map(|deduction| deduction.points).sum();
        let score = match state {
            HandoffState::RequestedNotCompleted => 1.0,
            HandoffState::Completed => (5.0 - lost).max(WORST_COMPLETED),
            HandoffState::None | HandoffState::OfferedNotTaken => 5.0,
        };
        let applicable = matches!(state, HandoffState::RequestedNotCompleted | HandoffState::Completed);
        let promised = calls.iter().any(|call| call.by != HandoffRequester::Customer);
        Self { handoff, score, deductions, applicable, opened_by, promised }
    }

    /// Whether the customer asked for a person.
    pub(crate) fn customer_asked(&self) -> bool {
        self.handoff.requested_by == Some(HandoffRequester::Customer)
    }
}

/// Every request of the customer to an AI, every promise of the AI, every transfer by the system, in order.
fn calls(transcript: &Transcript<'_>, course: &CustomerCourse) -> Vec<Call> {
    let mut calls = Vec::new();
    for (index, item) in transcript.items.iter().enumerate() {
        let call = match item.role {
            Role::Customer => customer_call(transcript, course, index),
            Role::Ai => promise(item).map(|phrase| (HandoffRequester::Ai, Some(phrase))),
            Role::System => {
                item.first(Group::TransferEvent).map(|phrase| (HandoffRequester::System, Some(phrase)))
            }
            Role::Human | Role::Mixed | Role::Note => None,
        };
        if let Some((by, phrase)) = call {
            calls.push(Call { item: index, by, phrase });
        }
    }
    calls
}

/// Where the customer takes the wish for a person back: by saying so, or by confirming that the AI solved it.
fn withdrawn_at(transcript: &Transcript<'_>, course: &CustomerCourse) -> Option<usize> {
    let declined = transcript
        .customer
        .iter()
        .rev()
        .copied()
        .find(|index| transcript.item(*index).is_some_and(|item| item.reading.declines_a_person));
    let confirmed = course.decided_by.map(|(item, _)| item).filter(|_| course.end == EndState::Confirmed);
    declined.max(confirmed)
}

/// A request of the customer, unless a human already talks to them: that would be another kind of escalation.
fn customer_call(
    transcript: &Transcript<'_>,
    course: &CustomerCourse,
    index: usize,
) -> Option<(HandoffRequester, Option<Found>)> {
    let answer = transcript.answer_before(index);
    if answer.is_some_and(|answer| answer.role == Role::Human) {
        return None;
    }
    let position = transcript.customer.iter().position(|customer| *customer == index)?;
    let reacted = course.reactions.get(position)?;
    let takes_offer = answer
        .is_some_and(|answer| answer.has(Group::TransferOffer) && answer.reading.questions > 0)
        && transcript.item(index).is_some_and(|item| item.has(Group::Consent));
    if reacted.reaction == Reaction::AsksForHuman {
        Some((HandoffRequester::Customer, reacted.phrase))
    } else if takes_offer {
        Some((HandoffRequester::Customer, transcript.item(index)?.first(Group::Consent)))
    } else {
        None
    }
}

/// A promise that a person comes. "Would you like me to …" promises nothing yet.
fn promise(item: &Item<'_>) -> Option<Found> {
    if !item.has(Group::TransferPromise) {
        return None;
    }
    let found = item.reading.found.as_slice();
    // Finds are in the order of their beginnings, so offers up to here may reach into the promise.
    let mut offered_to = 0;
    found.iter().enumerate().find_map(|(index, promise)| {
        if promise.group == Group::TransferOffer {
            offered_to = offered_to.max(promise.end);
        }
        if promise.group != Group::TransferPromise || promise.start < offered_to {
            return None;
        }
        let behind = found.iter().skip(index + 1).take_while(|other| other.start < promise.end);
        let is_offer = behind.into_iter().any(|other| other.group == Group::TransferOffer);
        (!is_offer).then_some(*promise)
    })
}

fn first_answer_with(transcript: &Transcript<'_>, group: Group) -> Option<(usize, Found)> {
    transcript.items.iter().enumerate().find_map(|(index, item)| {
        if item.role == Role::Ai { item.first(group).map(|phrase| (index, phrase)) } else { None }
    })
}

/// The first message of a human to the customer after an AI's.
fn takeover(transcript: &Transcript<'_>) -> Option<usize> {
    let first_ai = transcript.items.iter().position(|item| item.role == Role::Ai)?;
    let human = transcript.items.iter().skip(first_ai).position(|item| item.role == Role::Human)?;
    Some(first_ai + human)
}

fn human_after(transcript: &Transcript<'_>, index: usize) -> bool {
    transcript.items.iter().skip(index + 1).any(|item| item.role == Role::Human)
}

fn deductions(
    transcript: &Transcript<'_>,
    effort: &EffortFindings,
    calls: &[Call],
    takeover: Option<usize>,
    state: HandoffState,
) -> Vec<Deduction> {
    let Some(takeover) = takeover.filter(|_| state == HandoffState::Completed) else {
        return Vec::new();
    };
    let mut deductions = Vec::new();
    let requests: Vec<&Call> =
        calls.iter().filter(|call| call.by == HandoffRequester::Customer && call.item < takeover).collect();
    for again in requests.iter().skip(1).take(2) {
        deductions.push(Deduction { code: "HUMAN_REQUESTED_AGAIN", points: 0.7, item: again.item });
    }
    if let Some(request) = requests.first() {
        let deflections =
            transcript.items.iter().enumerate().take(takeover).skip(request.item).filter(|(_, item)| {
                item.role == Role::Ai && promise(item).is_none() && !item.has(Group::TransferOffer)
            });
        for (item, _) in deflections.take(3) {
            deductions.push(Deduction { code: "HUMAN_REQUEST_DEFLECTED", points: 0.4, item });
        }
    }
    let after = |items: &[usize]| items.iter().copied().find(|item| *item >= takeover);
    if let Some(item) = after(&effort.asked_again) {
        deductions.push(Deduction { code: "ASKED_AGAIN", points: 1.3, item });
    }
    if let Some(item) = after(&effort.repeats) {
        deductions.push(Deduction { code: "CUSTOMER_REPEATED", points: 1.3, item });
    }
    let first_call = calls.first().map_or(takeover, |call| call.item.min(takeover));
    if let Some(points) = waiting(time(transcript, first_call), time(transcript, takeover)) {
        deductions.push(Deduction { code: "WAITED_FOR_HUMAN", points, item: takeover });
    }
    let annoyed = transcript.customer.iter().copied().find(|index| {
        *index > takeover && transcript.item(*index).is_some_and(|item| item.has(Group::Frustration))
    });
    if let Some(item) = annoyed {
        deductions.push(Deduction { code: "CUSTOMER_FRUSTRATED", points: 0.5, item });
    }
    deductions
}

fn time(transcript: &Transcript<'_>, index: usize) -> Timestamp {
    transcript.item(index).map_or(Timestamp::MIN, |item| item.message.timestamp)
}

fn waiting(from: Timestamp, to: Timestamp) -> Option<f64> {
    let waited = to.millis_since(from);
    WAITS.iter().find(|(limit, _)| waited > *limit).map(|(_, points)| *points)
}
