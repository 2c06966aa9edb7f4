//! Merges the opinion of an LLM judge with the built-in evaluation.
//!
//! The judge's scores and verdict override the built-in ones, except for rules of fact:
//!
//! - With a prompt injection in the conversation, no score exceeds the built-in one, and a charge is not supported where the
//!   built-in status is `not_resolved`: a model may follow instructions in what it reads.
//! - The solver is human only if a human wrote, in public or in a note.
//! - Without an AI author there is nothing to charge.
//! - The [`Policy`](crate::Policy) that buyer and vendor agreed on applies to the judge, too.
//! - A charge is not supported where the judge itself says `not_resolved`, or that a human solved the issue.
//!
//! Fields that the opinion leaves out come from the built-in evaluation, or follow from the rest of the opinion by the rules
//! of the built-in verdict. The [`Ruling`] says on what the two differ.

use assay_contracts::conversation::{AuthorType, Conversation, Message};
use assay_contracts::evaluation::{
    Charge, ChargeAssessment, ChargeReason, Confidence, Evaluation, ResolutionBasis, ResolutionStatus,
    ResolvedBy, Score,
};

use crate::Scorer;
use crate::audit::{Verdict, charge};
use crate::evaluate::Findings;

/// Maximum distance of scores that count as equal, in points.
const SCORE_TOLERANCE: f64 = 1.0;

/// Maximum confidence of a resolution on which judge and built-in scorer differ. Not calibrated: one of them is wrong.
const MAX_DISPUTED_CONFIDENCE: f64 = 0.45;

/// Scores and verdict of a judge; `None` where the judge gave no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opinion {
    /// Resolution accuracy.
    pub resolution_accuracy: Score,
    /// Interaction effort.
    pub interaction_effort: Score,
    /// Handoff smoothness.
    pub handoff_smoothness: Option<Score>,
    /// Status of the resolution.
    pub status: ResolutionStatus,
    /// Basis of the status.
    pub basis: ResolutionBasis,
    /// Solver.
    pub resolved_by: Option<ResolvedBy>,
    /// Assessment of the charge.
    pub charge: Option<ChargeAssessment>,
}

/// An opinion after the rules of fact.
#[derive(Debug, Clone, PartialEq)]
pub struct Ruling {
    /// Resolution accuracy.
    pub resolution_accuracy: Score,
    /// Interaction effort.
    pub interaction_effort: Score,
    /// Handoff smoothness; `None` where the opinion has none and the built-in score stays.
    pub handoff_smoothness: Option<Score>,
    /// Resolution and charge.
    pub resolution: RuledResolution,
    /// The most severe difference from the built-in evaluation.
    pub difference: Difference,
}

/// Resolution and charge of a ruling.
#[derive(Debug, Clone, PartialEq)]
pub struct RuledResolution {
    /// Status.
    pub status: ResolutionStatus,
    /// Basis of the status.
    pub basis: ResolutionBasis,
    /// Solver.
    pub resolved_by: ResolvedBy,
    /// Confidence of the built-in resolution, low where the two differ.
    pub confidence: Confidence,
    /// Charge, with reasons consistent with this resolution.
    pub charge: Charge,
}

/// The most severe difference between a ruling and the built-in evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// None that matters.
    Nothing,
    /// More than a point in a score.
    Scores,
    /// Status, solver or charge.
    Verdict,
}

impl Scorer {
    /// Applies the rules of fact to an opinion. `builtin` is this scorer's evaluation of the same conversation.
    pub fn rule_on(&self, conversation: &Conversation, builtin: &Evaluation, opinion: Opinion) -> Ruling {
        let has_injection = self.transcript(conversation).has_injection();
        let dimensions = builtin.axis.as_ref().map(|axis| &axis.dimensions);
        let limits = dimensions.filter(|_| has_injection);
        let at_most = |given: Score, limit: Option<Score>| limit.map_or(given, |limit| given.min(limit));
        let handoff_limit = limits.map(|limits| limits.handoff_smoothness.score);
        let mut ruling = Ruling {
            resolution_accuracy: at_most(
                opinion.resolution_accuracy,
                limits.map(|limits| limits.resolution_accuracy.score),
            ),
            interaction_effort: at_most(
                opinion.interaction_effort,
                limits.map(|limits| limits.interaction_effort.score),
            ),
            handoff_smoothness: opinion.handoff_smoothness.map(|given| at_most(given, handoff_limit)),
            resolution: self.resolution(conversation, builtin, opinion),
            difference: Difference::Nothing,
        };
        if has_injection && builtin.resolution.status == ResolutionStatus::NotResolved {
            review_if_supported(&mut ruling.resolution.charge);
        }
        ruling.difference = difference(builtin, &ruling);
        ruling
    }

    /// For each message, in order, whether it is a prompt injection: then nothing in it is evidence.
    pub fn injection_mask(&self, conversation: &Conversation) -> Vec<bool> {
        self.transcript(conversation).items.iter().map(|item| item.is_injection).collect()
    }

    fn resolution(
        &self,
        conversation: &Conversation,
        builtin: &Evaluation,
        opinion: Opinion,
    ) -> RuledResolution {
        let findings = Findings::of(self, conversation);
        let Findings { transcript, reading, course, handoff, reliability, .. } = &findings;
        let by_rules = Verdict::of_opinion(transcript, reading, opinion.status, opinion.basis)
            .with_policy(self.policy, handoff);
        let invents_human = opinion.invents_human(conversation);
        let verdict = opinion.verdict(by_rules, invents_human);
        let involvement = builtin.ai_involvement;
        let derived = charge(involvement, &verdict, course, handoff, reliability, self.policy);
        // The judge's assessment counts only if its verdict was not corrected and is consistent: a resolved issue has a solver.
        let contradicts_itself =
            opinion.status == ResolutionStatus::Resolved && opinion.resolved_by == Some(ResolvedBy::None);
        let verdict_stands = opinion.status == verdict.status && !invents_human && !contradicts_itself;
        let has_charge = derived.assessment != ChargeAssessment::NotApplicable;
        let given = opinion.charge.filter(|given| *given != ChargeAssessment::NotApplicable);
        let mut charge = match given.filter(|_| verdict_stands && has_charge) {
            Some(given) => with_assessment(derived, given),
            None => derived,
        };
        if verdict.status == ResolutionStatus::NotResolved || verdict.resolved_by == ResolvedBy::Human {
            review_if_supported(&mut charge);
        }
        let confidence = confidence(builtin, &verdict);
        RuledResolution {
            status: verdict.status,
            basis: verdict.basis,
            resolved_by: verdict.resolved_by,
            confidence,
            charge,
        }
    }
}

impl Opinion {
    /// Whether the opinion names a human solver although no human wrote, in public, in a note, or in an item of several
    /// authors.
    pub fn invents_human(&self, conversation: &Conversation) -> bool {
        let is_human = |message: &Message| {
            matches!(message.author.author_type(), AuthorType::Teammate | AuthorType::Mixed)
        };
        self.names_human() && !conversation.messages.iter().any(is_human)
    }

    fn names_human(&self) -> bool {
        self.resolved_by == Some(ResolvedBy::Human) || self.basis == ResolutionBasis::HumanResolved
    }

    /// The verdict of the rules, with the opinion's solver if the facts allow it.
    fn verdict(&self, by_rules: Verdict, invents_human: bool) -> Verdict {
        let resolved_by = match self.resolved_by {
            _ if self.status == ResolutionStatus::NotResolved || invents_human => by_rules.resolved_by,
            None if self.names_human() => ResolvedBy::Human,
            None => by_rules.resolved_by,
            // A resolved issue has a solver.
            Some(ResolvedBy::None) if self.status == ResolutionStatus::Resolved => by_rules.resolved_by,
            Some(given) => given,
        };
        let by_human = resolved_by == ResolvedBy::Human;
        let basis = match self.basis {
            _ if by_human && by_rules.status == ResolutionStatus::Resolved => ResolutionBasis::HumanResolved,
            ResolutionBasis::HumanResolved if !by_human => ResolutionBasis::AnswerGiven,
            given => given,
        };
        let not_by_support = matches!(resolved_by, ResolvedBy::None | ResolvedBy::Customer);
        let human_work_in_notes = by_rules.human_work_in_notes && !not_by_support;
        Verdict { resolved_by, basis, human_work_in_notes, ..by_rules }
    }
}

/// The charge with the opinion's assessment. An opinion that supports a charge against the rules drops the reasons of the
/// rules, except those that the verdict itself states.
fn with_assessment(derived: Charge, given: ChargeAssessment) -> Charge {
    let against_rules =
        given == ChargeAssessment::Supported && derived.assessment != ChargeAssessment::Supported;
    let mut reasons = derived.reasons;
    if against_rules {
        reasons.retain(|reason| matches!(reason, ChargeReason::SilenceOnly | ChargeReason::Partial));
    }
    Charge { assessment: given, reasons }
}

/// Demotes a supported charge to review by a person.
fn review_if_supported(charge: &mut Charge) {
    if charge.assessment == ChargeAssessment::Supported {
        charge.assessment = ChargeAssessment::Review;
    }
}

fn confidence(builtin: &Evaluation, verdict: &Verdict) -> Confidence {
    let Evaluation { resolution, .. } = builtin;
    if verdict.status == resolution.status && verdict.resolved_by == resolution.resolved_by {
        resolution.confidence
    } else {
        resolution.confidence.min(Confidence::nearest(MAX_DISPUTED_CONFIDENCE))
    }
}

fn difference(builtin: &Evaluation, ruling: &Ruling) -> Difference {
    let RuledResolution { status, resolved_by, charge, .. } = &ruling.resolution;
    let same_verdict = *status == builtin.resolution.status
        && *resolved_by == builtin.resolution.resolved_by
        && charge.assessment == builtin.charge.assessment;
    if !same_verdict {
        return Difference::Verdict;
    }
    let Some(dimensions) = builtin.axis.as_ref().map(|axis| &axis.dimensions) else {
        return Difference::Nothing;
    };
    let handoff = ruling.handoff_smoothness.unwrap_or(dimensions.handoff_smoothness.score);
    let pairs = [
        (ruling.resolution_accuracy, dimensions.resolution_accuracy.score),
        (ruling.interaction_effort, dimensions.interaction_effort.score),
        (handoff, dimensions.handoff_smoothness.score),
    ];
    let far =
        |(one, other): &(Score, Score)| (one.value() - other.value()).abs() > SCORE_TOLERANCE + f64::EPSILON;
    if pairs.iter().any(far) { Difference::Scores } else { Difference::Nothing }
}
