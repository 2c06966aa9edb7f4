//! The handoff from AI to human: requested, promised or completed, and its flaws.
//!
//! Authors and times are facts; requests and promises are predicted by the reader. A requested or promised handoff that was
//! not completed scores worst: otherwise refusing to hand over would be rewarded.

use assay_contracts::evaluation::{Handoff, HandoffRequester, HandoffState};

use crate::course::{CustomerCourse, EndState};
use crate::effort::EffortFindings;
use crate::reader::{Act, Reading};
use crate::transcript::{Role, Transcript};

/// Minimum wait for a human that is reported: 15 minutes, in milliseconds.
const LONG_WAIT_MILLIS: i64 = 15 * 60_000;
/// Minimum probability at which a request or promise limits the smoothness: less probable ones may only sound like one (ADR 25).
const CLEAR: f32 = 0.85;
/// Maximum smoothness if a human was clearly requested or promised and none came.
const MAX_NOT_COMPLETED: f64 = 2.0;
/// Maximum smoothness if the customer had to repeat the request, or to repeat information to the human.
const MAX_WITH_REPETITION: f64 = 3.0;
/// Minimum predicted smoothness of a conversation without a handoff that counts as not needing one.
const MIN_NOT_NEEDED: f64 = 4.5;

/// Something that made the handoff less smooth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HandoffFlaw {
    /// Code of the signal.
    pub code: &'static str,
    /// The item that shows it.
    pub item: usize,
}

impl HandoffFlaw {
    /// Whether the customer had to say something twice.
    fn is_repetition(&self) -> bool {
        matches!(self.code, "HUMAN_REQUESTED_AGAIN" | "CUSTOMER_REPEATED")
    }
}

/// The handoff with its score and flaws.
#[derive(Debug)]
pub(crate) struct HandoffFindings {
    /// For the evaluation.
    pub handoff: Handoff,
    /// 1.0–5.0.
    pub score: f64,
    /// Flaws, in order.
    pub flaws: Vec<HandoffFlaw>,
    /// Whether a handoff was requested, promised or completed.
    pub applicable: bool,
    /// The first item that requested, promised or completed the handoff.
    pub opening_item: Option<usize>,
    /// Whether the AI promised a human.
    pub promised: bool,
}

/// A request by the customer or a promise by the AI.
#[derive(Debug, Clone, Copy)]
struct HandoffRequest {
    item: usize,
    by: HandoffRequester,
    /// Whether it is hardly misread: only then it limits the smoothness.
    is_clear: bool,
}

impl HandoffFindings {
    /// Derives state, score and flaws from requests, promises, offers and the messages of humans.
    pub(crate) fn of(
        transcript: &Transcript<'_>,
        reading: &Reading,
        course: &CustomerCourse,
        effort: &EffortFindings,
    ) -> Self {
        let requests = requests(transcript, reading, course);
        let takeover = takeover(transcript);
        let unanswered = requests.iter().rev().find(|request| !human_after(transcript, request.item));
        let offer =
            transcript.answers.iter().copied().find(|index| offers_human(transcript, reading, *index));
        let state = match (takeover, unanswered, offer) {
            (_, Some(_), _) => HandoffState::RequestedNotCompleted,
            (Some(_), None, _) => HandoffState::Completed,
            (None, None, Some(_)) => HandoffState::OfferedNotTaken,
            (None, None, None) => HandoffState::None,
        };
        let opening_item = requests.first().map(|request| request.item).or(takeover).or(offer);
        let requested_by = match (requests.first(), state) {
            (Some(request), _) => Some(request.by),
            (None, HandoffState::Completed) => Some(HandoffRequester::System),
            (None, HandoffState::OfferedNotTaken) => Some(HandoffRequester::Ai),
            (None, _) => None,
        };
        let at = |item: usize| transcript.item(item).map(|item| item.message.timestamp);
        let handoff = Handoff {
            state,
            requested_by,
            at: opening_item.and_then(at),
            first_human_reply_at: takeover.and_then(at),
        };
        let completed_by = takeover.filter(|_| state == HandoffState::Completed);
        let flaws = completed_by
            .map_or_else(Vec::new, |takeover| find_flaws(transcript, effort, &requests, takeover));
        let predicted = reading.handoff_smoothness;
        let score = match state {
            HandoffState::RequestedNotCompleted if unanswered.is_some_and(|request| request.is_clear) => {
                predicted.min(MAX_NOT_COMPLETED)
            }
            HandoffState::Completed if flaws.iter().any(HandoffFlaw::is_repetition) => {
                predicted.min(MAX_WITH_REPETITION)
            }
            HandoffState::None | HandoffState::OfferedNotTaken if predicted >= MIN_NOT_NEEDED => 5.0,
            _ => predicted,
        };
        let applicable = matches!(state, HandoffState::RequestedNotCompleted | HandoffState::Completed);
        let promised = requests.iter().any(|request| request.by == HandoffRequester::Ai);
        Self { handoff, score, flaws, applicable, opening_item, promised }
    }

    /// Whether the customer requested the handoff.
    pub(crate) fn requested_by_customer(&self) -> bool {
        self.handoff.requested_by == Some(HandoffRequester::Customer)
    }
}

/// Requests of the customer to an AI and promises of the AI, in order. Accepting an offered handoff is a request. A customer who
/// confirms the solution withdraws earlier requests that no human answered, and promises of the AI after that do not count.
fn requests(transcript: &Transcript<'_>, reading: &Reading, course: &CustomerCourse) -> Vec<HandoffRequest> {
    let confirmed_at = course.decided_by.filter(|_| course.end == EndState::Confirmed);
    let mut requests = Vec::new();
    let (mut human_talks, mut is_offered) = (false, false);
    for (index, item) in transcript.items.iter().enumerate() {
        let acts = reading.acts(index);
        match item.role {
            Role::Human => (human_talks, is_offered) = (true, false),
            Role::Ai => {
                human_talks = false;
                is_offered = offers_human(transcript, reading, index);
                let is_promise = acts.has(Act::HandOver) && !is_offered;
                if is_promise && confirmed_at.is_none_or(|confirmed| index < confirmed) {
                    let is_clear = acts.probability(Act::HandOver) >= CLEAR;
                    requests.push(HandoffRequest { item: index, by: HandoffRequester::Ai, is_clear });
                }
            }
            // While a human answers, a request for a person is not a handoff from the AI.
            Role::Customer
                if !human_talks && (acts.has(Act::RequestHuman) || is_offered && acts.has(Act::Accept)) =>
            {
                let is_clear = is_offered || acts.probability(Act::RequestHuman) >= CLEAR;
                requests.push(HandoffRequest { item: index, by: HandoffRequester::Customer, is_clear });
            }
            Role::Customer | Role::System | Role::Mixed | Role::Note => {}
        }
    }
    let is_answered = |request: &HandoffRequest| human_after(transcript, request.item);
    requests.retain(|request| {
        confirmed_at.is_none_or(|confirmed| request.item > confirmed) || is_answered(request)
    });
    requests
}

/// Whether a human writes to the customer after the item.
fn human_after(transcript: &Transcript<'_>, index: usize) -> bool {
    transcript.items.iter().skip(index + 1).any(|item| item.role == Role::Human)
}

/// Whether an AI offers a handoff by asking the customer. An offer is not a promise.
fn offers_human(transcript: &Transcript<'_>, reading: &Reading, index: usize) -> bool {
    let by_ai = transcript.item(index).is_some_and(|item| item.role == Role::Ai);
    let acts = reading.acts(index);
    by_ai && acts.has(Act::HandOver) && acts.has(Act::RequestInformation)
}

/// The first message of a human to the customer after one of an AI.
fn takeover(transcript: &Transcript<'_>) -> Option<usize> {
    let first_ai = transcript.items.iter().position(|item| item.role == Role::Ai)?;
    let human = transcript.items.iter().skip(first_ai).position(|item| item.role == Role::Human)?;
    Some(first_ai + human)
}

fn find_flaws(
    transcript: &Transcript<'_>,
    effort: &EffortFindings,
    requests: &[HandoffRequest],
    takeover: usize,
) -> Vec<HandoffFlaw> {
    let mut flaws = Vec::new();
    let customer_requests: Vec<&HandoffRequest> = requests
        .iter()
        .filter(|request| request.by == HandoffRequester::Customer && request.item < takeover)
        .collect();
    if let Some(again) = customer_requests.get(1) {
        flaws.push(HandoffFlaw { code: "HUMAN_REQUESTED_AGAIN", item: again.item });
    }
    if let Some(item) = effort.repeats.iter().copied().find(|item| *item > takeover) {
        flaws.push(HandoffFlaw { code: "CUSTOMER_REPEATED", item });
    }
    let first_request = requests.first().map_or(takeover, |request| request.item.min(takeover));
    let time = |index: usize| transcript.item(index).map(|item| item.message.timestamp);
    if let (Some(from), Some(to)) = (time(first_request), time(takeover))
        && to.millis_since(from) > LONG_WAIT_MILLIS
    {
        flaws.push(HandoffFlaw { code: "WAITED_FOR_HUMAN", item: takeover });
    }
    flaws
}
