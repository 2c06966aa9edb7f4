//! Was the customer's issue solved, by whom, and what does the verdict rest on?

use assay_contracts::evaluation::{
    HandoffState, ResolutionBasis as Basis, ResolutionStatus as Status, ResolvedBy, Score,
};

use super::Policy;
use crate::answer::{is_substantive, tells_of_a_finished_action};
use crate::customer::{CustomerCourse, EndState};
use crate::handoff::HandoffFindings;
use crate::lexicon::Group;
use crate::transcript::{Role, Transcript};
use crate::weights_file::ResolutionThresholds;

/// The verdict, before it is put into words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verdict {
    pub status: Status,
    pub resolved_by: ResolvedBy,
    pub basis: Basis,
    /// How sure the basis alone makes the verdict, 0–1.
    pub certainty: f64,
    /// The item that the verdict rests on.
    pub item: Option<usize>,
    /// Whether notes show human work that the customer did not see.
    pub human_work_in_notes: bool,
    /// Whether the customer got a substantive answer before they left the end open.
    pub open_after_help: bool,
    /// Who gave the answers, whatever came of them.
    pub helper: ResolvedBy,
}

/// Certainty at most of a verdict that the score decided.
const WEIGHED: f64 = 0.55;
/// Courtesy at the end makes up for so many points of resolution accuracy.
const COURTESY_CREDIT: f64 = 0.4;

/// What some answers amount to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AnswerQuality {
    /// The last answer that says something: more than a few words, not to an evaluator, not mere questions.
    pub substantive: Option<usize>,
    /// The last answer that tells of a finished action.
    pub done: Option<usize>,
    /// The last refusal.
    pub refused: Option<usize>,
}

impl AnswerQuality {
    /// Looks at the answers among `indices`.
    pub(crate) fn of(transcript: &Transcript<'_>, indices: impl Iterator<Item = usize>) -> Self {
        let mut quality = Self::default();
        for index in indices {
            let Some(item) = transcript.item(index).filter(|item| item.role.answers() && !item.is_injected())
            else {
                continue;
            };
            if item.has(Group::Refusal) {
                quality.refused = Some(index);
            }
            if tells_of_a_finished_action(item) {
                quality.done = Some(index);
                quality.substantive = Some(index);
            } else if !item.has(Group::Refusal) && is_substantive(item) {
                quality.substantive = Some(index);
            }
        }
        quality
    }

    /// Whether the last of these answers that says anything refuses.
    fn ends_in_refusal(&self) -> bool {
        self.refused > self.substantive
    }
}

impl Verdict {
    /// Judges the conversation.
    pub(crate) fn of(
        transcript: &Transcript<'_>,
        course: &CustomerCourse,
        handoff: &HandoffFindings,
    ) -> Self {
        Judge { transcript, course, handoff }.by_end_state().with_notes(transcript)
    }

    /// The verdict in the light of the whole conversation, where its end alone says little: courtesy at the end of a
    /// conversation that went wrong closes it without solving the issue, and an open end after real help leaves
    /// something solved.
    pub(crate) fn weighed(
        mut self,
        accuracy: Option<Score>,
        thresholds: Option<ResolutionThresholds>,
    ) -> Self {
        let (Some(accuracy), Some(thresholds)) = (accuracy.map(Score::value), thresholds) else {
            return self;
        };
        let rests_on_courtesy = matches!(self.basis, Basis::AnswerGiven | Basis::ActionCompleted)
            && self.resolved_by != ResolvedBy::Human;
        if self.status == Status::Resolved
            && rests_on_courtesy
            && accuracy < thresholds.resolved_above - COURTESY_CREDIT
        {
            self.status = Status::Partial;
            self.basis = Basis::AnswerGiven;
            self.certainty = self.certainty.min(WEIGHED);
        }
        if self.status == Status::Partial && rests_on_courtesy && accuracy < thresholds.not_resolved_below {
            self.status = Status::NotResolved;
            self.resolved_by = ResolvedBy::None;
            self.basis = Basis::NoAnswer;
            self.certainty = self.certainty.min(WEIGHED);
        }
        if self.open_after_help && accuracy >= thresholds.not_resolved_below {
            self.status = Status::Partial;
            self.resolved_by = if self.human_work_in_notes { ResolvedBy::Unknown } else { self.helper };
            self.basis = Basis::AnswerGiven;
            self.certainty = self.certainty.min(WEIGHED);
        }
        self
    }

    /// The verdict that another reader's `status` and `basis` amount to. Who solved it and what the notes show stays with
    /// the rules, as does the policy.
    pub(crate) fn from_reader(
        transcript: &Transcript<'_>,
        course: &CustomerCourse,
        handoff: &HandoffFindings,
        policy: Policy,
        (status, basis): (Status, Basis),
    ) -> Self {
        let judge = Judge { transcript, course, handoff };
        let by_human = status == Status::Resolved && judge.solver() == ResolvedBy::Human;
        let basis = if by_human { Basis::HumanResolved } else { basis };
        judge.verdict(status, basis, 0.0, None).with_notes(transcript).under(policy, handoff)
    }

    fn with_notes(mut self, transcript: &Transcript<'_>) -> Self {
        self.human_work_in_notes =
            transcript.items.iter().any(|item| item.role == Role::Note && item.has(Group::HumanWork));
        if self.human_work_in_notes && self.resolved_by == ResolvedBy::Ai {
            self.resolved_by = ResolvedBy::Unknown;
        }
        self
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

struct Judge<'t, 'a> {
    transcript: &'t Transcript<'a>,
    course: &'t CustomerCourse,
    handoff: &'t HandoffFindings,
}

impl Judge<'_, '_> {
    fn by_end_state(&self) -> Verdict {
        let decided_by = self.course.decided_by.map(|(item, _)| item);
        match self.course.end {
            EndState::Absent => self.verdict(Status::NotResolved, Basis::NoAnswer, 0.4, None),
            EndState::Confirmed => self.solved(Basis::CustomerConfirmed, 0.9),
            EndState::Thanked => self.politely_closed(0.75),
            EndState::Closed | EndState::Accepted => self.politely_closed(0.6),
            EndState::Open => self.left_open(),
            EndState::Rejected | EndState::Repeated | EndState::GaveUp => {
                self.verdict(Status::NotResolved, Basis::CustomerRejected, 0.85, decided_by)
            }
            EndState::AskedForHuman => self.wanted_human(decided_by),
        }
    }

    fn verdict(&self, status: Status, basis: Basis, certainty: f64, item: Option<usize>) -> Verdict {
        let resolved_by = match status {
            Status::NotResolved => ResolvedBy::None,
            Status::Resolved | Status::Partial => self.solver(),
        };
        Verdict {
            status,
            resolved_by,
            basis,
            certainty,
            item,
            human_work_in_notes: false,
            open_after_help: false,
            helper: self.solver(),
        }
    }

    /// Solved; a human who wrote to the customer is taken for the one who solved it.
    fn solved(&self, basis: Basis, certainty: f64) -> Verdict {
        let basis = if self.solver() == ResolvedBy::Human { Basis::HumanResolved } else { basis };
        self.verdict(Status::Resolved, basis, certainty, self.course.decided_by.map(|(item, _)| item))
    }

    /// The customer thanked, said goodbye or "ok": what were they given before?
    fn politely_closed(&self, certainty: f64) -> Verdict {
        let heard = self.heard();
        let decided_by = self.course.decided_by.map(|(item, _)| item);
        if self.handoff.handoff.state == HandoffState::RequestedNotCompleted {
            return self.verdict(Status::NotResolved, Basis::Escalated, 0.7, self.call());
        }
        let accepts = matches!(self.course.end, EndState::Accepted);
        match (heard.done, heard.substantive, heard.refused) {
            (Some(_), _, None) => self.solved(Basis::ActionCompleted, certainty),
            (Some(_), _, Some(_)) if !accepts && !heard.ends_in_refusal() => {
                self.solved(Basis::ActionCompleted, certainty - 0.1)
            }
            (Some(_), _, Some(refused)) => {
                self.verdict(Status::Partial, Basis::AnswerGiven, certainty - 0.1, Some(refused))
            }
            (None, Some(_), None) if !accepts => self.solved(Basis::AnswerGiven, certainty - 0.1),
            (None, Some(answer), _) => {
                self.verdict(Status::Partial, Basis::AnswerGiven, certainty - 0.1, Some(answer))
            }
            (None, None, Some(refused)) => {
                let status = if accepts { Status::NotResolved } else { Status::Partial };
                let basis = if accepts { Basis::NoAnswer } else { Basis::AnswerGiven };
                self.verdict(status, basis, certainty - 0.1, Some(refused))
            }
            (None, None, None) if self.transcript.has_role(Role::Mixed) => {
                self.verdict(Status::Partial, Basis::AnswerGiven, 0.5, decided_by)
            }
            (None, None, None) => self.after_the_end(decided_by),
        }
    }

    /// The customer's last word is a question, a request, or information: what came after it?
    fn left_open(&self) -> Verdict {
        if self.handoff.handoff.state == HandoffState::RequestedNotCompleted {
            return self.verdict(Status::NotResolved, Basis::Escalated, 0.75, self.call());
        }
        let mut verdict = self.after_the_end(self.transcript.customer.last().copied());
        let helped = self.heard().substantive.is_some() && !self.course.ends_objecting();
        verdict.open_after_help = helped && verdict.basis == Basis::NoAnswer;
        verdict
    }

    /// Nothing that comes after the customer's last word proves a resolution; an answer makes it possible.
    fn after_the_end(&self, fallback: Option<usize>) -> Verdict {
        let after = AnswerQuality::of(self.transcript, self.after_last_customer());
        if after.ends_in_refusal() {
            return self.verdict(Status::NotResolved, Basis::NoAnswer, 0.65, after.refused);
        }
        match (after.done, after.substantive) {
            (Some(done), _) if self.customer_let_go_on() => {
                self.verdict(Status::Partial, Basis::ActionCompleted, 0.55, Some(done))
            }
            (_, Some(answer)) => self.verdict(Status::Partial, Basis::SilenceOnly, 0.5, Some(answer)),
            (_, None) => self.verdict(Status::NotResolved, Basis::NoAnswer, 0.6, fallback),
        }
    }

    fn wanted_human(&self, decided_by: Option<usize>) -> Verdict {
        let human_came = self.handoff.handoff.state == HandoffState::Completed;
        if human_came {
            let after = AnswerQuality::of(self.transcript, self.after_last_customer());
            let item = after.substantive.or(decided_by);
            return self.verdict(Status::Partial, Basis::Escalated, 0.55, item);
        }
        let basis = if self.handoff.promised { Basis::Escalated } else { Basis::NoAnswer };
        self.verdict(Status::NotResolved, basis, 0.85, decided_by)
    }

    /// Whoever wrote to the customer last among humans and AI agents solved it, humans first: an AI's goodbye
    /// behind a human's work does not make it the AI's. Items with several actors prove nothing.
    fn solver(&self) -> ResolvedBy {
        if self.transcript.has_role(Role::Human) {
            ResolvedBy::Human
        } else if self.transcript.has_role(Role::Mixed) {
            ResolvedBy::Unknown
        } else if self.transcript.has_role(Role::Ai) {
            ResolvedBy::Ai
        } else {
            ResolvedBy::Unknown
        }
    }

    fn heard(&self) -> AnswerQuality {
        // Where a human took over, what the AI could not do before is not what the customer was left with.
        let is_human =
            |index: &usize| self.transcript.item(*index).is_some_and(|item| item.role == Role::Human);
        let heard = self.transcript.answers.iter().copied().take(self.transcript.heard);
        let takeover = heard.clone().position(|index| is_human(&index)).unwrap_or(0);
        let heard = heard.skip(takeover);
        let last = self.transcript.customer.last().copied().unwrap_or(0);
        AnswerQuality::of(self.transcript, heard.filter(move |index| *index < last))
    }

    fn after_last_customer(&self) -> impl Iterator<Item = usize> {
        let last = self.transcript.customer.last().copied();
        self.transcript.answers.iter().copied().filter(move |index| last.is_some_and(|last| *index > last))
    }

    fn customer_let_go_on(&self) -> bool {
        let last = self.transcript.customer_items().next_back();
        last.is_some_and(|item| item.has_any(&[Group::Consent, Group::Acknowledge]))
    }

    fn call(&self) -> Option<usize> {
        self.handoff.opened_by.map(|(item, _)| item)
    }
}
