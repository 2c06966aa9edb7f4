//! The passage from AI to human: whether one was asked for, promised or made, and what made it rough.
//!
//! Who wrote when is fact; what was asked for or promised is read. Asked for or promised and not made counts as the
//! worst of all: otherwise refusing to hand over would be rewarded.

use assay_contracts::evaluation::{Handoff, HandoffRequester, HandoffState};

use crate::course::{CustomerCourse, EndState};
use crate::effort::EffortFindings;
use crate::reader::{Act, Reading};
use crate::transcript::{Role, Transcript};

/// From this wait for a person on it is reported: 15 minutes, in milliseconds.
const LONG_WAIT: i64 = 15 * 60_000;
/// Smoothness at most where a person was asked for or promised and none came.
const NOT_COMPLETED: f64 = 2.0;
/// Smoothness at most where the customer had to ask for the person again, or to tell the person again what was said.
const TOLD_TWICE: f64 = 3.0;
/// From this on, smoothness without any handoff is that of a conversation that needed none.
const NONE_NEEDED: f64 = 4.5;

/// Something that made the passage rough.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    /// Code of the signal.
    pub code: &'static str,
    /// The item that shows it.
    pub item: usize,
}

impl Fault {
    /// Whether the customer had to say something twice.
    fn is_repetition(&self) -> bool {
        matches!(self.code, "HUMAN_REQUESTED_AGAIN" | "CUSTOMER_REPEATED")
    }
}

/// What was found out about the handoff.
#[derive(Debug)]
pub(crate) struct HandoffFindings {
    /// For the evaluation.
    pub handoff: Handoff,
    /// 1.0–5.0.
    pub score: f64,
    /// What made it rough, in order.
    pub faults: Vec<Fault>,
    /// Whether a handoff was asked for, promised or made.
    pub applicable: bool,
    /// The item that asked for, promised or made the handoff first.
    pub opened_by: Option<usize>,
    /// Whether the AI said that a person takes over.
    pub promised: bool,
}

/// Something that calls for a person.
#[derive(Debug, Clone, Copy)]
struct Call {
    item: usize,
    by: HandoffRequester,
}

impl HandoffFindings {
    /// Follows the calls for a person and the person's first message.
    pub(crate) fn of(
        transcript: &Transcript<'_>,
        reading: &Reading,
        course: &CustomerCourse,
        effort: &EffortFindings,
    ) -> Self {
        let calls = calls(transcript, reading, course);
        let takeover = takeover(transcript);
        let human_after =
            |index: usize| transcript.items.iter().skip(index + 1).any(|item| item.role == Role::Human);
        let unanswered = calls.iter().rev().find(|call| !human_after(call.item));
        let offer =
            transcript.answers.iter().copied().find(|index| offers_human(transcript, reading, *index));
        let state = match (takeover, unanswered, offer) {
            (_, Some(_), _) => HandoffState::RequestedNotCompleted,
            (Some(_), None, _) => HandoffState::Completed,
            (None, None, Some(_)) => HandoffState::OfferedNotTaken,
            (None, None, None) => HandoffState::None,
        };
        let opened_by = calls.first().map(|call| call.item).or(takeover).or(offer);
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
            at: opened_by.and_then(at),
            first_human_reply_at: takeover.and_then(at),
        };
        let faults = takeover.filter(|_| state == HandoffState::Completed);
        let faults = faults.map_or_else(Vec::new, |takeover| faults_of(transcript, effort, &calls, takeover));
        let read = reading.handoff_smoothness;
        let score = match state {
            HandoffState::RequestedNotCompleted => read.min(NOT_COMPLETED),
            HandoffState::Completed if faults.iter().any(Fault::is_repetition) => read.min(TOLD_TWICE),
            HandoffState::None | HandoffState::OfferedNotTaken if read >= NONE_NEEDED => 5.0,
            _ => read,
        };
        let applicable = matches!(state, HandoffState::RequestedNotCompleted | HandoffState::Completed);
        let promised = calls.iter().any(|call| call.by == HandoffRequester::Ai);
        Self { handoff, score, faults, applicable, opened_by, promised }
    }

    /// Whether the customer asked for a person.
    pub(crate) fn customer_asked(&self) -> bool {
        self.handoff.requested_by == Some(HandoffRequester::Customer)
    }
}

/// Every request of the customer to an AI and every promise of the AI, in order. A customer who confirms that the
/// issue is solved takes the wish back.
fn calls(transcript: &Transcript<'_>, reading: &Reading, course: &CustomerCourse) -> Vec<Call> {
    let settled = course.decided_by.filter(|_| course.end == EndState::Confirmed);
    let mut calls = Vec::new();
    let mut human_talks = false;
    for (index, item) in transcript.items.iter().enumerate() {
        let acts = reading.acts(index);
        match item.role {
            Role::Human => human_talks = true,
            Role::Ai => {
                human_talks = false;
                if acts.has(Act::HandOver) && !offers_human(transcript, reading, index) {
                    calls.push(Call { item: index, by: HandoffRequester::Ai });
                }
            }
            // What is asked of a human is another kind of escalation.
            Role::Customer if !human_talks && acts.has(Act::AskPerson) => {
                calls.push(Call { item: index, by: HandoffRequester::Customer });
            }
            Role::Customer | Role::System | Role::Mixed | Role::Note => {}
        }
    }
    calls.retain(|call| settled.is_none_or(|settled| call.item > settled) || takeover(transcript).is_some());
    calls
}

/// Whether an AI asks the customer whether a person shall take over. That promises nothing yet.
fn offers_human(transcript: &Transcript<'_>, reading: &Reading, index: usize) -> bool {
    let by_ai = transcript.item(index).is_some_and(|item| item.role == Role::Ai);
    let acts = reading.acts(index);
    by_ai && acts.has(Act::HandOver) && acts.has(Act::AskBack)
}

/// The first message of a human to the customer after an AI's.
fn takeover(transcript: &Transcript<'_>) -> Option<usize> {
    let first_ai = transcript.items.iter().position(|item| item.role == Role::Ai)?;
    let human = transcript.items.iter().skip(first_ai).position(|item| item.role == Role::Human)?;
    Some(first_ai + human)
}

fn faults_of(
    transcript: &Transcript<'_>,
    effort: &EffortFindings,
    calls: &[Call],
    takeover: usize,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    let requests: Vec<&Call> =
        calls.iter().filter(|call| call.by == HandoffRequester::Customer && call.item < takeover).collect();
    if let Some(again) = requests.get(1) {
        faults.push(Fault { code: "HUMAN_REQUESTED_AGAIN", item: again.item });
    }
    if let Some(item) = effort.repeats.iter().copied().find(|item| *item > takeover) {
        faults.push(Fault { code: "CUSTOMER_REPEATED", item });
    }
    let first_call = calls.first().map_or(takeover, |call| call.item.min(takeover));
    let time = |index: usize| transcript.item(index).map(|item| item.message.timestamp);
    if let (Some(from), Some(to)) = (time(first_call), time(takeover))
        && to.millis_since(from) > LONG_WAIT
    {
        faults.push(Fault { code: "WAITED_FOR_HUMAN", item: takeover });
    }
    faults
}
