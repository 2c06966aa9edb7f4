//! Whether the issue was solved, by whom, and on which basis.
//!
//! The most probable verdict of the reader that the facts allow: a human who never wrote cannot be the solver, and
//! items with several authors do not prove who solved it.

use assay_contracts::evaluation::{
    ChargeAssessment, HandoffState, ResolutionBasis as Basis, ResolutionStatus as Status, ResolvedBy,
};

use super::Policy;
use crate::course::{CustomerCourse, EndState};
use crate::handoff::HandoffFindings;
use crate::reader::{Act, Calibration, Reading, exp, ln};
use crate::transcript::{Role, Transcript};

/// Status, solver and basis of the resolution.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verdict {
    pub status: Status,
    pub resolved_by: ResolvedBy,
    pub basis: Basis,
    /// Calibrated probability that the status is right, 0–1.
    pub certainty: f64,
    /// The item that supports the basis.
    pub item: Option<usize>,
    /// Whether internal notes may show human work that the customer did not see.
    pub human_work_in_notes: bool,
}

// Statuses, solvers and charges in the order of the reader's outputs.
const STATUSES: [Status; 3] = [Status::Resolved, Status::Partial, Status::NotResolved];
const SOLVERS: [ResolvedBy; 5] =
    [ResolvedBy::Ai, ResolvedBy::Human, ResolvedBy::Customer, ResolvedBy::None, ResolvedBy::Unknown];
const CHARGES: [ChargeAssessment; 4] = [
    ChargeAssessment::Supported,
    ChargeAssessment::Review,
    ChargeAssessment::Disputed,
    ChargeAssessment::NotApplicable,
];
/// Minimum probability of a clear complaint.
const CLEAR: f32 = 0.9;
/// Weight of the predicted charge relative to status and solver.
const CHARGE_WEIGHT: f64 = 0.5;

impl Verdict {
    /// Judges the conversation.
    pub(crate) fn of(
        transcript: &Transcript<'_>,
        reading: &Reading,
        course: &CustomerCourse,
        handoff: &HandoffFindings,
        calibration: &Calibration,
    ) -> Self {
        let (status, resolved_by, certainty) = most_probable(transcript, reading, calibration);
        let finder = BasisFinder { transcript, reading, course, handoff };
        let (basis, item) = finder.find(status, resolved_by);
        let human_work_in_notes = may_hide_human_work(transcript, resolved_by);
        Self { status, resolved_by, basis, certainty, item, human_work_in_notes }
    }

    /// The verdict for the `status` and `basis` of an LLM judge, without certainty and item; the solver is the reader's most probable.
    pub(crate) fn of_opinion(
        transcript: &Transcript<'_>,
        reading: &Reading,
        status: Status,
        basis: Basis,
    ) -> Self {
        let resolved_by = solver(transcript, reading, status);
        let human_work_in_notes = may_hide_human_work(transcript, resolved_by);
        Self { status, resolved_by, basis, certainty: 0.0, item: None, human_work_in_notes }
    }

    /// The verdict under the policy that buyer and vendor agreed on.
    pub(crate) fn with_policy(mut self, policy: Policy, handoff: &HandoffFindings) -> Self {
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

/// The most probable combination of status, solver and resulting charge, and the calibrated probability of the status.
/// Excluded are combinations that facts rule out, and `resolved` where the customer complains last.
fn most_probable(
    transcript: &Transcript<'_>,
    reading: &Reading,
    calibration: &Calibration,
) -> (Status, ResolvedBy, f64) {
    let ends_with_complaint = ends_with_clear_complaint(transcript, reading);
    let is_excluded = |status: Status| status == Status::Resolved && ends_with_complaint;
    let status_log_probabilities = log_softmax(&reading.status.map(|logit| logit / calibration.temperature));
    let (solver_log_probabilities, charge_log_probabilities) =
        (log_softmax(&reading.solver), log_softmax(&reading.charge));
    let mut best = (Status::NotResolved, ResolvedBy::None, f64::MIN);
    for (status, status_log_probability) in STATUSES.into_iter().zip(status_log_probabilities) {
        for (solver, solver_log_probability) in SOLVERS.into_iter().zip(solver_log_probabilities) {
            if is_excluded(status) || !is_possible(transcript, status, solver) {
                continue;
            }
            let charge = default_charge(transcript.has_role(Role::Ai), status, solver);
            let charge_log_probability = CHARGES
                .into_iter()
                .zip(charge_log_probabilities)
                .find(|(known, _)| *known == charge)
                .map_or(0.0, |(_, value)| value);
            let sum =
                status_log_probability + solver_log_probability + CHARGE_WEIGHT * charge_log_probability;
            if sum > best.2 {
                best = (status, solver, sum);
            }
        }
    }
    let (status, solver, _) = best;
    let probabilities = || STATUSES.into_iter().zip(status_log_probabilities.map(exp));
    let total: f64 = probabilities().filter(|(other, _)| !is_excluded(*other)).map(|(_, value)| value).sum();
    let certainty =
        probabilities().find(|(other, _)| *other == status).map_or(0.0, |(_, value)| value / total);
    (status, solver, certainty)
}

/// Whether the last message is a clear complaint of the customer. Irony does not count: the predicted status covers it.
fn ends_with_clear_complaint(transcript: &Transcript<'_>, reading: &Reading) -> bool {
    let last_answer = transcript.answers.last();
    let last_of_customer = transcript.customer.last();
    let Some(last) = last_of_customer.filter(|last| last_answer.is_none_or(|answer| answer < *last)) else {
        return false;
    };
    let acts = reading.acts(*last);
    let complaint = acts.strongest(&[Act::Reject, Act::Return, Act::RequestHuman, Act::GiveUp]);
    complaint.is_some_and(|(_, probability)| probability >= CLEAR)
        && acts.probability(Act::Confirm) < 1.0 - CLEAR
}

/// Logarithms of the probabilities of the logits.
fn log_softmax<const COUNT: usize>(logits: &[f64; COUNT]) -> [f64; COUNT] {
    let highest = logits.iter().copied().fold(f64::MIN, f64::max);
    let sum: f64 = logits.iter().map(|logit| exp(logit - highest)).sum();
    logits.map(|logit| logit - highest - ln(sum))
}

/// The charge that follows from status and solver alone.
const fn default_charge(has_ai: bool, status: Status, solver: ResolvedBy) -> ChargeAssessment {
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

/// Whether the solution may be human work that only internal notes show: a human wrote notes, but no public message.
fn may_hide_human_work(transcript: &Transcript<'_>, resolved_by: ResolvedBy) -> bool {
    let not_by_support = matches!(resolved_by, ResolvedBy::None | ResolvedBy::Customer);
    transcript.has_human_note() && !not_by_support && !transcript.has_role(Role::Human)
}

/// The most probable solver that a status and the authors of the transcript allow.
fn solver(transcript: &Transcript<'_>, reading: &Reading, status: Status) -> ResolvedBy {
    let mut best = (ResolvedBy::Unknown, f64::MIN);
    for (solver, logit) in SOLVERS.into_iter().zip(reading.solver) {
        if is_possible(transcript, status, solver) && logit > best.1 {
            best = (solver, logit);
        }
    }
    best.0
}

/// Whether status and solver agree with each other and with the authors of the transcript.
fn is_possible(transcript: &Transcript<'_>, status: Status, solver: ResolvedBy) -> bool {
    let has = |role| transcript.has_role(role);
    match (status, solver) {
        (Status::NotResolved, solver) => solver == ResolvedBy::None,
        (_, ResolvedBy::Ai) => has(Role::Ai),
        (_, ResolvedBy::Human) => has(Role::Human) || transcript.has_human_note(),
        // Only what the customer writes after an answer can show that they solved the issue alone.
        (_, ResolvedBy::Customer) => status == Status::Resolved && transcript.customer_replied(),
        (_, ResolvedBy::None) => false,
        (_, ResolvedBy::Unknown) => has(Role::Mixed) || !has(Role::Ai),
    }
}

struct BasisFinder<'t, 'a> {
    transcript: &'t Transcript<'a>,
    reading: &'t Reading,
    course: &'t CustomerCourse,
    handoff: &'t HandoffFindings,
}

impl BasisFinder<'_, '_> {
    /// The basis of the verdict, and the item that shows it.
    fn find(&self, status: Status, resolved_by: ResolvedBy) -> (Basis, Option<usize>) {
        let decided_by = self.course.decided_by;
        match status {
            Status::NotResolved => self.for_unresolved(),
            Status::Resolved if resolved_by == ResolvedBy::Human => {
                let satisfied_by = decided_by.filter(|_| self.course.end.is_satisfied());
                (Basis::HumanResolved, satisfied_by.or_else(|| self.last_of_role(Role::Human)).or(decided_by))
            }
            Status::Resolved if self.course.end == EndState::Confirmed => {
                (Basis::CustomerConfirmed, decided_by)
            }
            Status::Resolved => match self.last_answer_with(Act::CarryOut) {
                Some(_) => (Basis::ActionCompleted, decided_by),
                None => (Basis::AnswerGiven, decided_by),
            },
            Status::Partial => self.for_partial(),
        }
    }

    fn for_unresolved(&self) -> (Basis, Option<usize>) {
        let decided_by = self.course.decided_by;
        if self.handoff.handoff.state == HandoffState::RequestedNotCompleted && self.handoff.promised {
            return (Basis::Escalated, self.handoff.opening_item);
        }
        if self.course.end.is_unhappy() || self.course.end == EndState::Doubting {
            return (Basis::CustomerRejected, decided_by);
        }
        (Basis::NoAnswer, decided_by)
    }

    fn for_partial(&self) -> (Basis, Option<usize>) {
        let after = self.first_answer_after_customer();
        if self.handoff.handoff.state == HandoffState::Completed && !self.course.end.is_satisfied() {
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

    /// The first answer after the customer's last message.
    fn first_answer_after_customer(&self) -> Option<usize> {
        let last = self.transcript.customer.last().copied()?;
        self.transcript.answers.iter().copied().find(|answer| *answer > last)
    }
}
