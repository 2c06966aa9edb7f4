//! Another reader's opinion on a conversation, as an LLM judge has one, and what the rules let stand of it.
//!
//! A reader that understands language sees more than phrase lists do, and can be talked into anything by the text that it
//! reads. So its scores and its verdict are taken within what the rules read off the conversation:
//!
//! - No score is above the ceilings that hold for the built-in scores (rejection, refusals, loops, a missing human). That
//!   of an end without contentment ([`UNHEARD`]) only lowers a score, and not where the language has no phrase lists or
//!   the opinion rests on the customer's confirmation: there the other reader may have heard what the lists have not.
//! - Where a message talks to an evaluator, no score is above the built-in's, none is more than [`CREDIBLE`] below it, and
//!   the resolution is not better than the built-in's.
//! - A customer who ends with a rejection leaves the issue `not_resolved`; one who ends by repeating it, asking for a person
//!   or giving up leaves it `partial` at best; silence alone proves no resolution.
//! - A score that is more than [`CREDIBLE`] above its ceiling, or `resolved` where the rules say `not_resolved` at best, is
//!   no finer reading but the contrary: the opinion is refused as a whole.
//!
//! Who solved the issue and what that means for a charge is always the rules' own conclusion.

use assay_contracts::conversation::Conversation;
use assay_contracts::evaluation::{
    Charge, Confidence, Evaluation, Flag, ResolutionBasis, ResolutionStatus, ResolvedBy, Score,
};

use crate::Scorer;
use crate::audit::{Verdict, charge};
use crate::customer::{CustomerCourse, EndState};
use crate::doubt::Doubts;
use crate::effort::EffortFindings;
use crate::handoff::HandoffFindings;
use crate::model::{Guards, ModelledDimension};

/// Points by which an opinion may pass a limit before it counts as contrary to the rules.
const CREDIBLE: f64 = 1.0;

/// Codes of ceilings that rest on nothing but words that were not found.
const UNHEARD: [&str; 1] = ["ISSUE_LEFT_OPEN"];

/// Confidence at most of a resolution on which the two readers differ: too little for a charge to be supported.
const DISPUTED: f64 = 0.45;

/// What another reader found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opinion {
    /// Its resolution accuracy.
    pub resolution_accuracy: Score,
    /// Its interaction effort.
    pub interaction_effort: Score,
    /// Whether it takes the issue for solved.
    pub status: ResolutionStatus,
    /// What that rests on.
    pub basis: ResolutionBasis,
}

/// What the rules let stand of an opinion.
#[derive(Debug, Clone, PartialEq)]
pub struct Ruling {
    /// Within the limits.
    pub resolution_accuracy: Score,
    /// Within the limits.
    pub interaction_effort: Score,
    /// The resolution and what it means for a charge; `None` where the built-in resolution stays.
    pub resolution: Option<RuledResolution>,
}

/// An opinion's resolution with the rules' conclusions from it.
#[derive(Debug, Clone, PartialEq)]
pub struct RuledResolution {
    /// Was the customer's issue solved.
    pub status: ResolutionStatus,
    /// What that rests on.
    pub basis: ResolutionBasis,
    /// Who solved it.
    pub resolved_by: ResolvedBy,
    /// That of the built-in resolution, low where the two differ.
    pub confidence: Confidence,
    /// Whether a charge is supported.
    pub charge: Charge,
}

/// An opinion that says the opposite of what the rules read off the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// A score is far above its ceiling.
    #[error("{dimension} is {given}, and at most {ceiling} by the rules")]
    Score {
        /// `resolution accuracy` or `interaction effort`.
        dimension: &'static str,
        /// As given.
        given: Score,
        /// The ceiling.
        ceiling: Score,
    },
    /// The issue is called solved where the customer says the contrary.
    #[error("resolution is {}, and {} at best by the rules", given.as_str(), best.as_str())]
    Status {
        /// As given.
        given: ResolutionStatus,
        /// The best that the rules allow.
        best: ResolutionStatus,
    },
}

impl Scorer {
    /// Takes another reader's opinion within the rules. `builtin` is this scorer's evaluation of the same conversation.
    ///
    /// # Errors
    /// When the opinion contradicts the rules.
    pub fn rule_on(
        &self,
        conversation: &Conversation,
        builtin: &Evaluation,
        opinion: Opinion,
    ) -> Result<Ruling, Contradiction> {
        let transcript = self.reader.transcript(conversation);
        let course = CustomerCourse::of(&transcript);
        let effort = EffortFindings::of(&transcript);
        let handoff = HandoffFindings::of(&transcript, &course, &effort);
        let doubts = Doubts::of(&transcript, &handoff);
        let guards = Guards { transcript: &transcript, course: &course, effort: &effort, handoff: &handoff };
        let dimensions = builtin.axis.as_ref().map(|axis| &axis.dimensions).filter(|_| talks(builtin));
        let may_hear_more = opinion.basis == ResolutionBasis::CustomerConfirmed
            || builtin.flags.contains(&Flag::UnsupportedLanguage);
        let bounds = |dimension, own: Option<Score>| Bounds::of(&guards, dimension, may_hear_more, own);
        let accuracy = dimensions.map(|dimensions| dimensions.resolution_accuracy.score);
        let resolution_accuracy = bounds(ModelledDimension::ResolutionAccuracy, accuracy)
            .apply("resolution accuracy", opinion.resolution_accuracy)?;
        let effort = dimensions.map(|dimensions| dimensions.interaction_effort.score);
        let interaction_effort = bounds(ModelledDimension::InteractionEffort, effort)
            .apply("interaction effort", opinion.interaction_effort)?;
        let resolution = stands(course.end, builtin, opinion)?.then(|| {
            let reading = (opinion.status, opinion.basis);
            let verdict = Verdict::from_reader(&transcript, &course, &handoff, self.policy, reading);
            let confidence = confidence(builtin, verdict.status);
            RuledResolution {
                status: verdict.status,
                basis: verdict.basis,
                resolved_by: verdict.resolved_by,
                confidence,
                charge: charge(
                    builtin.ai_involvement,
                    &verdict,
                    &course,
                    &handoff,
                    &doubts,
                    confidence.value(),
                    self.policy,
                ),
            }
        });
        Ok(Ruling { resolution_accuracy, interaction_effort, resolution })
    }

    /// For each message of the conversation, whether it talks to an evaluator: then nothing in it is evidence.
    pub fn talks_to_evaluator(&self, conversation: &Conversation) -> Vec<bool> {
        let transcript = self.reader.transcript(conversation);
        transcript.items.iter().map(crate::transcript::Item::is_injected).collect()
    }
}

/// Whether a message talks to an evaluator.
fn talks(builtin: &Evaluation) -> bool {
    builtin.flags.contains(&Flag::PossiblePromptInjection)
}

/// Between which a score may lie.
struct Bounds {
    floor: Score,
    ceiling: Score,
    /// A score that is far above this is contrary to the rules.
    firm: Score,
}

impl Bounds {
    /// Of the rules, and near `own` where there is one: the built-in score beside text that talks to an evaluator.
    fn of(
        guards: &Guards<'_, '_>,
        dimension: ModelledDimension,
        may_hear_more: bool,
        own: Option<Score>,
    ) -> Self {
        let limits = guards.limits(dimension);
        let ceiling_of = |unheard: bool| {
            let limits = limits.iter().filter(|limit| unheard || !UNHEARD.contains(&limit.code));
            let limited = limits.fold(Score::MAX.value(), |value, limit| limit.apply(value));
            // What complaints take off, they take off every reader's score.
            let complaints = guards.steps(dimension).effect.min(0.0);
            let rules =
                Score::nearest(if limited < Score::MAX.value() { limited + complaints } else { limited });
            own.map_or(rules, |own| own.min(rules))
        };
        let (firm, ceiling) = (ceiling_of(false), ceiling_of(!may_hear_more));
        let floor = own.map_or(Score::MIN, |own| Score::nearest(own.value() - CREDIBLE)).min(ceiling);
        Self { floor, ceiling, firm }
    }

    fn apply(&self, dimension: &'static str, given: Score) -> Result<Score, Contradiction> {
        if given.value() > self.firm.value() + CREDIBLE {
            return Err(Contradiction::Score { dimension, given, ceiling: self.firm });
        }
        Ok(given.clamp(self.floor, self.ceiling))
    }
}

/// Whether the opinion's resolution may stand in place of the built-in's.
fn stands(end: EndState, builtin: &Evaluation, opinion: Opinion) -> Result<bool, Contradiction> {
    let silent = builtin.resolution.basis == ResolutionBasis::SilenceOnly
        && opinion.basis != ResolutionBasis::CustomerConfirmed;
    let by_end = match end {
        EndState::Rejected => ResolutionStatus::NotResolved,
        EndState::Repeated | EndState::GaveUp | EndState::AskedForHuman => ResolutionStatus::Partial,
        _ if silent => ResolutionStatus::Partial,
        _ => ResolutionStatus::Resolved,
    };
    let best = if talks(builtin) { worse(by_end, builtin.resolution.status) } else { by_end };
    match rank(opinion.status) - rank(best) {
        ..=0 => Ok(true),
        1 => Ok(false),
        _ => Err(Contradiction::Status { given: opinion.status, best }),
    }
}

fn worse(one: ResolutionStatus, other: ResolutionStatus) -> ResolutionStatus {
    if rank(one) <= rank(other) { one } else { other }
}

const fn rank(status: ResolutionStatus) -> i8 {
    match status {
        ResolutionStatus::NotResolved => 0,
        ResolutionStatus::Partial => 1,
        ResolutionStatus::Resolved => 2,
    }
}

fn confidence(builtin: &Evaluation, status: ResolutionStatus) -> Confidence {
    let confidence = builtin.resolution.confidence;
    if status == builtin.resolution.status {
        confidence
    } else {
        confidence.min(Confidence::nearest(DISPUTED))
    }
}
