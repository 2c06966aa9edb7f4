//! Whether the transcript supports an AI vendor's charge for the conversation.

use assay_contracts::evaluation::{
    AiInvolvement, Charge, ChargeAssessment, ChargeReason, HandoffRequester, HandoffState, ResolutionBasis,
    ResolutionStatus, ResolvedBy,
};

use super::{Policy, Verdict};
use crate::course::CustomerCourse;
use crate::handoff::HandoffFindings;
use crate::reliability::Reliability;

/// Assesses the charge.
pub(crate) fn charge(
    involvement: AiInvolvement,
    verdict: &Verdict,
    course: &CustomerCourse,
    handoff: &HandoffFindings,
    reliability: &Reliability,
    policy: Policy,
) -> Charge {
    if involvement == AiInvolvement::NoAi {
        return Charge { assessment: ChargeAssessment::NotApplicable, reasons: Vec::new() };
    }
    let reasons = reasons(verdict, course, handoff);
    let is_undecided_silence = verdict.basis == ResolutionBasis::SilenceOnly && !policy.silence_is_resolved;
    let needs_review = reliability.needs_review(verdict.status);
    // A human was requested or promised, and none came: the issue may be solved all the same, but a person should look first.
    let waits_for_human = handoff.handoff.state == HandoffState::RequestedNotCompleted;
    let unclear = is_undecided_silence || verdict.human_work_in_notes || needs_review || waits_for_human;
    let assessment = match (verdict.status, verdict.resolved_by) {
        (_, ResolvedBy::Human) => ChargeAssessment::Disputed,
        (ResolutionStatus::NotResolved, _) if needs_review => ChargeAssessment::Review,
        (ResolutionStatus::NotResolved, _) => ChargeAssessment::Disputed,
        (ResolutionStatus::Resolved, ResolvedBy::Ai) if !unclear => ChargeAssessment::Supported,
        (ResolutionStatus::Resolved, ResolvedBy::Customer) => ChargeAssessment::Disputed,
        (ResolutionStatus::Partial | ResolutionStatus::Resolved, _) => ChargeAssessment::Review,
    };
    Charge { assessment, reasons }
}

fn reasons(verdict: &Verdict, course: &CustomerCourse, handoff: &HandoffFindings) -> Vec<ChargeReason> {
    let state = handoff.handoff.state;
    let escalated = state == HandoffState::Completed
        || (state == HandoffState::RequestedNotCompleted && handoff.promised)
        || verdict.basis == ResolutionBasis::Escalated;
    let ignored = state == HandoffState::RequestedNotCompleted && handoff.requested_by_customer();
    // `System`: a human took over and nobody had asked. With a customer who is not unhappy that is a workflow, no escalation.
    let planned = state == HandoffState::Completed
        && handoff.handoff.requested_by == Some(HandoffRequester::System)
        && !course.end.is_unhappy();
    // A customer who did not react to a completed action is silent, too.
    let ends_in_silence = verdict.basis == ResolutionBasis::SilenceOnly
        || (verdict.status == ResolutionStatus::Partial && verdict.basis == ResolutionBasis::ActionCompleted);
    let partial = verdict.status == ResolutionStatus::Partial && !ends_in_silence;
    let cases = [
        (verdict.resolved_by == ResolvedBy::Human, ChargeReason::HumanResolved),
        (escalated, ChargeReason::Escalated),
        (verdict.basis == ResolutionBasis::CustomerRejected, ChargeReason::CustomerRejected),
        (ends_in_silence, ChargeReason::SilenceOnly),
        (verdict.basis == ResolutionBasis::NoAnswer, ChargeReason::NoSubstantiveAnswer),
        (ignored, ChargeReason::HumanRequestIgnored),
        (course.reopened, ChargeReason::Reopened),
        (partial, ChargeReason::Partial),
        (planned, ChargeReason::PlannedHandoff),
        (verdict.human_work_in_notes, ChargeReason::HumanWorkInNotes),
    ];
    cases.into_iter().filter(|(holds, _)| *holds).map(|(_, reason)| reason).collect()
}
