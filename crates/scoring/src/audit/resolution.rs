//! Was the customer's issue solved, by whom, and what does the verdict rest on?
//!
//! The reader says what it thinks most probable; facts limit it: a human who never wrote solved nothing, and items with
//! several actors prove nothing about who did.

use assay_contracts::evaluation::{
    HandoffState, ResolutionBasis as Basis, ResolutionStatus as Status, ResolvedBy,
};

use super::Policy;
use crate::course::{CustomerCourse, EndState};
use crate::handoff::HandoffFindings;
use crate::reader::{Act, Calibration, Reading, exponential};
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
    /// Whether notes show human work that the customer did not see.
    pub human_work_in_notes: bool,
}

const STATUSES: [Status; 3] = [Status::Resolved, Status::Partial, Status::NotResolved];
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
        let (status, certainty) = most_probable(reading, calibration);
        let resolved_by = solver(transcript, reading, status);
        let evidence = Evidence { transcript, reading, course, handoff };
        let (basis, item) = evidence.of(status, resolved_by);
        let human_work_in_notes = notes_show_work(transcript, resolved_by);
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
        let human_work_in_notes = notes_show_work(transcript, resolved_by);
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

/// The most probable state of the issue and how often such a verdict is right.
fn most_probable(reading: &Reading, calibration: &Calibration) -> (Status, f64) {
    let logits = reading.status.map(|logit| logit / calibration.temperature);
    let highest = logits.iter().copied().fold(f64::MIN, f64::max);
    let sum: f64 = logits.iter().map(|logit| exponential(logit - highest)).sum();
    let index = logits.iter().position(|logit| *logit >= highest).unwrap_or(0);
    (STATUSES.get(index).copied().unwrap_or(Status::Partial), 1.0 / sum)
}

/// Whether internal notes are what speaks for a human: one who wrote notes and nothing that the customer saw.
fn notes_show_work(transcript: &Transcript<'_>, resolved_by: ResolvedBy) -> bool {
    resolved_by == ResolvedBy::Human && transcript.has_role(Role::Note) && !transcript.has_role(Role::Human)
}

/// Who solved it, as far as facts allow.
fn solver(transcript: &Transcript<'_>, reading: &Reading, status: Status) -> ResolvedBy {
    if status == Status::NotResolved {
        return ResolvedBy::None;
    }
    let has = |role| transcript.has_role(role);
    let possible = |solver: ResolvedBy| match solver {
        ResolvedBy::Ai => has(Role::Ai),
        ResolvedBy::Human => has(Role::Human) || has(Role::Note),
        ResolvedBy::Customer => status == Status::Resolved,
        ResolvedBy::None => false,
        ResolvedBy::Unknown => has(Role::Mixed) || !has(Role::Ai),
    };
    let mut best = (ResolvedBy::Unknown, f64::MIN);
    for (solver, logit) in SOLVERS.into_iter().zip(reading.solver) {
        if possible(solver) && logit > best.1 {
            best = (solver, logit);
        }
    }
    best.0
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
            Status::Resolved if self.course.end == EndState::Confirmed => (Basis::CustomerConfirmed, decided_by),
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
