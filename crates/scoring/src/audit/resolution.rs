//! Was the customer's issue solved, by whom, and what does the verdict rest on?
//!
//! The reader says what it thinks most probable; facts limit it: a human who never wrote solved nothing, and items with
//! several actors prove nothing about who did.

use assay_contracts::evaluation::{
    ChargeAssessment, HandoffState, ResolutionBasis as Basis, ResolutionStatus as Status, ResolvedBy,
};

use super::Policy;
use crate::course::{CustomerCourse, EndState};
use crate::handoff::HandoffFindings;
use crate::reader::{Act, Calibration, Reading, exponential, logarithm};
use crate::transcript::{Role, Transcript};

/// The verdict, before it is put into words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verdict {
    pub status: Status,
    pub resolved_by: ResolvedBy,
    pub basis: Basis,
    /// How often verdicts like this one are right, 0–1.
    pub certainty: f64,
    /// The item that the verdict rests on.
    pub item: Option<usize>,
    /// Whether notes may hold human work that the customer did not see.
    pub human_work_in_notes: bool,
}

const STATUSES: [Status; 3] = [Status::Resolved, Status::Partial, Status::NotResolved];
/// In the order of the reader's outputs.
const CHARGES: [ChargeAssessment; 4] = [
    ChargeAssessment::Supported,
    ChargeAssessment::Review,
    ChargeAssessment::Disputed,
    ChargeAssessment::NotApplicable,
];
/// From this probability on a complaint is plain.
const PLAIN: f32 = 0.9;
/// What the reader's view of the charge counts for beside those of state and solver.
const CHARGE_COUNTS: f64 = 0.5;
const SOLVERS: [ResolvedBy; 5] =
    [ResolvedBy::Ai, ResolvedBy::Human, ResolvedBy::Customer, ResolvedBy::None, ResolvedBy::Unknown];

impl Verdict {
    /// Judges the conversation.
    pub(crate) fn of(
        transcript: &Transcript<'_>,
        reading: &Reading,
        course: &CustomerCourse,
        handoff: &HandoffFindings,
        calibration: &Calibration,
    ) -> Self {
        let (status, resolved_by, certainty) = most_probable(transcript, reading, handoff, calibration);
        let evidence = Evidence { transcript, reading, course, handoff };
        let (basis, item) = evidence.of(status, resolved_by);
        let human_work_in_notes = notes_may_hold_work(transcript, resolved_by);
        Self { status, resolved_by, basis, certainty, item, human_work_in_notes }
    }

    /// The verdict that another reader's `status` and `basis` amount to: the solver is who this reader takes for it.
    pub(crate) fn of_opinion(
        transcript: &Transcript<'_>,
        reading: &Reading,
        status: Status,
        basis: Basis,
    ) -> Self {
        let resolved_by = solver(transcript, reading, status);
        let human_work_in_notes = notes_may_hold_work(transcript, resolved_by);
        Self { status, resolved_by, basis, certainty: 0.0, item: None, human_work_in_notes }
    }

    /// The verdict under the rules that buyers and vendors agreed on.
    pub(crate) fn under(mut self, policy: Policy, handoff: &HandoffFindings) -> Self {
        if policy.silence_is_resolved && self.basis == Basis::SilenceOnly {
            self.status = Status::Resolved;
        }
        let escalated = handoff.handoff.state == HandoffState::Completed;
        if policy.escalation_counts_as_not_resolved && escalated {
            self.status = Status::NotResolved;
        }
        self
    }
}

/// The state and the solver that together with the charge that follows from them are most probable, and how often such a
/// state is right. What facts rule out is not considered, nor that an issue is solved whose customer has the last word and
/// complains, or waits for a person who was asked for or promised.
fn most_probable(
    transcript: &Transcript<'_>,
    reading: &Reading,
    handoff: &HandoffFindings,
    calibration: &Calibration,
) -> (Status, ResolvedBy, f64) {
    let is_open = handoff.handoff.state == HandoffState::RequestedNotCompleted
        || complains_plainly_at_the_end(transcript, reading);
    let states = logarithms(&reading.status.map(|logit| logit / calibration.temperature));
    let (solvers, charges) = (logarithms(&reading.solver), logarithms(&reading.charge));
    let mut best = (Status::NotResolved, ResolvedBy::None, f64::MIN);
    for (status, state) in STATUSES.into_iter().zip(states) {
        for (solver, of_solver) in SOLVERS.into_iter().zip(solvers) {
            if (status == Status::Resolved && is_open) || !is_possible(transcript, status, solver) {
                continue;
            }
            let charge = usual_charge(transcript.has_role(Role::Ai), status, solver);
            let of_charge = CHARGES
                .into_iter()
                .zip(charges)
                .find(|(of, _)| *of == charge)
                .map_or(0.0, |(_, value)| value);
            let sum = state + of_solver + CHARGE_COUNTS * of_charge;
            if sum > best.2 {
                best = (status, solver, sum);
            }
        }
    }
    let (status, solver, _) = best;
    let certainty = STATUSES
        .into_iter()
        .zip(states)
        .find(|(of, _)| *of == status)
        .map_or(0.0, |(_, value)| exponential(value));
    (status, solver, certainty)
}

/// Whether the last word is a plain complaint of the customer's. What is meant ironically is left to the reader.
fn complains_plainly_at_the_end(transcript: &Transcript<'_>, reading: &Reading) -> bool {
    let Some(last) = transcript.customer.last().filter(|last| Some(*last) > transcript.answers.last()) else {
        return false;
    };
    let acts = reading.acts(*last);
    let complaint = acts.strongest(&[Act::Reject, Act::Return, Act::AskPerson, Act::GiveUp]);
    complaint.is_some_and(|(_, probability)| probability >= PLAIN)
        && acts.probability(Act::Confirm) < 1.0 - PLAIN
}

/// Logarithms of the probabilities of these logits.
fn logarithms<const COUNT: usize>(logits: &[f64; COUNT]) -> [f64; COUNT] {
    let highest = logits.iter().copied().fold(f64::MIN, f64::max);
    let sum: f64 = logits.iter().map(|logit| exponential(logit - highest)).sum();
    logits.map(|logit| logit - highest - logarithm(sum))
}

/// What state and solver mean for a charge where nothing else speaks against it.
const fn usual_charge(has_ai: bool, status: Status, solver: ResolvedBy) -> ChargeAssessment {
    if !has_ai {
        return ChargeAssessment::NotApplicable;
    }
    match (status, solver) {
        (_, ResolvedBy::Human) | (Status::NotResolved, _) | (Status::Resolved, ResolvedBy::Customer) => {
            ChargeAssessment::Disputed
        }
        (Status::Resolved, ResolvedBy::Ai) => ChargeAssessment::Supported,
        (Status::Resolved | Status::Partial, _) => ChargeAssessment::Review,
    }
}

/// Whether what was solved, in whole or in part, may be a human's work that shows in internal notes alone: one wrote notes,
/// and nothing that the customer saw.
fn notes_may_hold_work(transcript: &Transcript<'_>, resolved_by: ResolvedBy) -> bool {
    let somebody_else = matches!(resolved_by, ResolvedBy::None | ResolvedBy::Customer);
    transcript.has_human_note() && !somebody_else && !transcript.has_role(Role::Human)
}

/// Who solved it where the state is given, as far as facts allow.
fn solver(transcript: &Transcript<'_>, reading: &Reading, status: Status) -> ResolvedBy {
    let mut best = (ResolvedBy::Unknown, f64::MIN);
    for (solver, logit) in SOLVERS.into_iter().zip(reading.solver) {
        if is_possible(transcript, status, solver) && logit > best.1 {
            best = (solver, logit);
        }
    }
    best.0
}

/// Whether facts allow this solver: who never wrote solved nothing.
fn is_possible(transcript: &Transcript<'_>, status: Status, solver: ResolvedBy) -> bool {
    let has = |role| transcript.has_role(role);
    match (status, solver) {
        (Status::NotResolved, solver) => solver == ResolvedBy::None,
        (_, ResolvedBy::Ai) => has(Role::Ai),
        (_, ResolvedBy::Human) => has(Role::Human) || transcript.has_human_note(),
        (_, ResolvedBy::Customer) => status == Status::Resolved,
        (_, ResolvedBy::None) => false,
        (_, ResolvedBy::Unknown) => has(Role::Mixed) || !has(Role::Ai),
    }
}

struct Evidence<'t, 'a> {
    transcript: &'t Transcript<'a>,
    reading: &'t Reading,
    course: &'t CustomerCourse,
    handoff: &'t HandoffFindings,
}

impl Evidence<'_, '_> {
    /// What the verdict rests on, and the item that shows it.
    fn of(&self, status: Status, resolved_by: ResolvedBy) -> (Basis, Option<usize>) {
        let decided_by = self.course.decided_by;
        match status {
            Status::NotResolved => self.of_failure(),
            Status::Resolved if resolved_by == ResolvedBy::Human => {
                let confirmed = decided_by.filter(|_| self.course.end.is_content());
                (Basis::HumanResolved, confirmed.or_else(|| self.last_of_role(Role::Human)).or(decided_by))
            }
            Status::Resolved if self.course.end == EndState::Confirmed => {
                (Basis::CustomerConfirmed, decided_by)
            }
            Status::Resolved => match self.last_answer_with(Act::CarryOut) {
                Some(_) => (Basis::ActionCompleted, decided_by),
                None => (Basis::AnswerGiven, decided_by),
            },
            Status::Partial => self.of_open_end(),
        }
    }

    fn of_failure(&self) -> (Basis, Option<usize>) {
        let decided_by = self.course.decided_by;
        if self.handoff.handoff.state == HandoffState::RequestedNotCompleted && self.handoff.promised {
            return (Basis::Escalated, self.handoff.opened_by);
        }
        if self.course.end.is_unhappy() || self.course.end == EndState::Doubting {
            return (Basis::CustomerRejected, decided_by);
        }
        (Basis::NoAnswer, decided_by)
    }

    fn of_open_end(&self) -> (Basis, Option<usize>) {
        let after = self.answer_behind_the_customer();
        if self.handoff.handoff.state == HandoffState::Completed && !self.course.end.is_content() {
            return (Basis::Escalated, self.last_of_role(Role::Human).or(after));
        }
        match after {
            Some(answer) if self.course.end == EndState::Open => {
                let basis =
                    if self.has(answer, Act::CarryOut) { Basis::ActionCompleted } else { Basis::SilenceOnly };
                (basis, Some(answer))
            }
            _ => (Basis::AnswerGiven, self.course.decided_by.or(after)),
        }
    }

    fn has(&self, index: usize, act: Act) -> bool {
        self.reading.acts(index).has(act)
    }

    fn last_of_role(&self, role: Role) -> Option<usize> {
        self.transcript.items.iter().rposition(|item| item.role == role)
    }

    fn last_answer_with(&self, act: Act) -> Option<usize> {
        self.transcript.answers.iter().rev().copied().find(|index| self.has(*index, act))
    }

    /// The first answer behind the customer's last message.
    fn answer_behind_the_customer(&self) -> Option<usize> {
        let last = self.transcript.customer.last().copied()?;
        self.transcript.answers.iter().copied().find(|answer| *answer > last)
    }
}
