//! Overlays a judge's answer on a built-in evaluation.

use assay_contracts::evaluation::{
    Axis, AxisBand, ChargeAssessment, Confidence, Dimension, Evaluation, Evidence, Flag, HandoffDimension,
    JudgeUse, ResolutionBasis, ResolutionStatus, Score, ScorerKind, Signal,
};
use assay_scoring::{Difference, Ruling, hundredths};

use crate::answer::{Answer, ResolutionFinding, Section};
use crate::config::JudgePolicy;
use crate::evidence::Quotes;

/// Relative loss of confidence for each point of difference between judge and built-in scorer. Not calibrated: a difference
/// only shows that one of the two is wrong.
const CONFIDENCE_LOSS_PER_POINT: f64 = 0.15;

/// The `basis` of a handoff smoothness that the judge scored.
const BASIS_JUDGE: &str = "judge";

/// A usable answer: its quotes are located, and the rules about facts are applied.
#[derive(Debug, Clone)]
pub(crate) struct Judgement {
    pub answer: Answer,
    pub quotes: Quotes,
    pub ruling: Ruling,
}

/// Replaces the findings of the built-in evaluation by those of the judge.
pub(crate) fn overlay(
    builtin: Evaluation,
    judgement: Judgement,
    policy: JudgePolicy,
    model: &str,
    usage: JudgeUse,
) -> Evaluation {
    let Judgement { answer, quotes, ruling } = judgement;
    let mut evaluation = with_scorer(builtin, ScorerKind::Judge, model, usage);
    let mut list = EvidenceList { evidence: &mut evaluation.evidence };
    if let Some(axis) = &mut evaluation.axis {
        let dimensions = &mut axis.dimensions;
        DimensionMut::of(&mut dimensions.resolution_accuracy).replace(
            answer.resolution_accuracy,
            ruling.resolution_accuracy,
            list.add_all(quotes.resolution_accuracy),
        );
        DimensionMut::of(&mut dimensions.interaction_effort).replace(
            answer.interaction_effort,
            ruling.interaction_effort,
            list.add_all(quotes.interaction_effort),
        );
        if let Some((section, ruled)) = answer.handoff_smoothness.zip(ruling.handoff_smoothness) {
            let smoothness = &mut dimensions.handoff_smoothness;
            // 5.0 means that no handoff was needed; a lower score means that one was.
            smoothness.applicable |= ruled < Score::MAX;
            BASIS_JUDGE.clone_into(&mut smoothness.basis);
            let evidence = list.add_all(quotes.handoff_smoothness);
            DimensionMut::of_handoff(smoothness).replace(section, ruled, evidence);
        }
        recompute_axis(axis, ruling.resolution.status);
    }
    let ruled_resolution = ruling.resolution;
    let resolution = &mut evaluation.resolution;
    resolution.customer_confirmed =
        customer_confirmed(answer.resolution.finding, resolution.customer_confirmed);
    resolution.status = ruled_resolution.status;
    resolution.resolved_by = ruled_resolution.resolved_by;
    resolution.basis = ruled_resolution.basis;
    resolution.confidence = ruled_resolution.confidence;
    resolution.reason = answer.resolution.reason;
    resolution.evidence = list.add_all(quotes.resolution);
    evaluation.charge = ruled_resolution.charge;
    flag_disagreement(&mut evaluation, ruling.difference, policy);
    evaluation
}

/// The unchanged built-in evaluation, marked as a fallback.
pub(crate) fn fallback(builtin: Evaluation, model: &str, usage: JudgeUse) -> Evaluation {
    with_scorer(builtin, ScorerKind::Fallback, model, usage)
}

fn with_scorer(mut evaluation: Evaluation, kind: ScorerKind, model: &str, usage: JudgeUse) -> Evaluation {
    evaluation.scorer.kind = kind;
    evaluation.scorer.judge_model = Some(model.to_owned());
    evaluation.scorer.judge = Some(usage);
    evaluation
}

/// What the customer said, not who solved it or what it counts as: a ruling may turn the basis into `HumanResolved`, and the
/// policy the status into `not_resolved`. So this reads the judge's own finding. A confirmation that only the built-in scorer
/// found stands if the judge says `resolved`, too.
fn customer_confirmed(judged: ResolutionFinding, builtin_confirmed: bool) -> bool {
    judged.basis == ResolutionBasis::CustomerConfirmed
        || (builtin_confirmed && judged.status == ResolutionStatus::Resolved)
}

/// Flags disagreement. Under `advise`, a charge goes to review if judge and built-in scorer differ in the status or solver of the
/// resolution, or in the assessment of the charge.
fn flag_disagreement(evaluation: &mut Evaluation, difference: Difference, policy: JudgePolicy) {
    if difference == Difference::Nothing {
        return;
    }
    evaluation.flags.push(Flag::JudgeDisagrees);
    let is_charged = evaluation.charge.assessment != ChargeAssessment::NotApplicable;
    if policy == JudgePolicy::Advise && difference == Difference::Verdict && is_charged {
        evaluation.charge.assessment = ChargeAssessment::Review;
    }
}

/// The common fields of both kinds of dimension.
struct DimensionMut<'d> {
    score: &'d mut Score,
    confidence: &'d mut Confidence,
    reason: &'d mut String,
    signals: &'d mut Vec<Signal>,
}

impl<'d> DimensionMut<'d> {
    fn of(dimension: &'d mut Dimension) -> Self {
        let Dimension { score, confidence, reason, signals } = dimension;
        Self { score, confidence, reason, signals }
    }

    fn of_handoff(dimension: &'d mut HandoffDimension) -> Self {
        let HandoffDimension { score, confidence, reason, signals, .. } = dimension;
        Self { score, confidence, reason, signals }
    }

    /// Sets the ruled score and adds the effects of judge and rules to the built-in signals. A score limited by rules keeps the
    /// built-in reason.
    fn replace(self, section: Section<Score>, ruled: Score, evidence: Vec<usize>) {
        let builtin = self.score.value();
        let judged = section.finding.value();
        let judge_effect = hundredths(judged - builtin);
        let rules_effect = hundredths(ruled.value() - judged);
        let score_distance = (judged - builtin).abs();
        *self.confidence =
            Confidence::nearest(self.confidence.value() * (1.0 - CONFIDENCE_LOSS_PER_POINT * score_distance));
        *self.score = ruled;
        // In front, so that they come before equal effects: the sort below is stable.
        self.signals.insert(0, Signal { code: "JUDGE".to_owned(), effect: judge_effect, evidence });
        if rules_effect == 0.0 {
            *self.reason = section.reason;
        } else {
            let limited =
                Signal { code: "LIMITED_BY_RULES".to_owned(), effect: rules_effect, evidence: Vec::new() };
            self.signals.insert(1, limited);
        }
        self.signals.sort_by(|one, other| other.effect.abs().total_cmp(&one.effect.abs()));
    }
}

/// Recomputes AXIS and its band from the three scores and the resolution.
fn recompute_axis(axis: &mut Axis, status: ResolutionStatus) {
    let dimensions = &axis.dimensions;
    let two = [dimensions.resolution_accuracy.score, dimensions.interaction_effort.score];
    let three = [two[0], two[1], dimensions.handoff_smoothness.score];
    axis.score = Score::mean(&three).unwrap_or(Score::MIN);
    axis.excluding_handoff = Score::mean(&two).unwrap_or(Score::MIN);
    axis.band =
        AxisBand::of(axis.score, axis.excluding_handoff, dimensions.handoff_smoothness.applicable, status);
}

/// The evidence of an evaluation, without duplicates.
struct EvidenceList<'e> {
    evidence: &'e mut Vec<Evidence>,
}

impl EvidenceList<'_> {
    /// Adds quotes and returns their indices.
    fn add_all(&mut self, quotes: Vec<Evidence>) -> Vec<usize> {
        quotes.into_iter().map(|quote| self.add(quote)).collect()
    }

    fn add(&mut self, quote: Evidence) -> usize {
        self.evidence.iter().position(|known| *known == quote).unwrap_or_else(|| {
            self.evidence.push(quote);
            self.evidence.len() - 1
        })
    }
}
