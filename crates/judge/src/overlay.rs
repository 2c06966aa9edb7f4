//! Laying a judge's answer over a built-in evaluation.

use assay_contracts::evaluation::{
    Axis, AxisBand, ChargeAssessment, Confidence, Dimension, Evaluation, Evidence, Flag, HandoffDimension,
    JudgeUse, ResolutionBasis, ResolutionStatus, Score, ScorerKind, Signal,
};
use assay_scoring::{Difference, Ruling};

use crate::answer::{Answer, Part};
use crate::config::JudgePolicy;
use crate::evidence::Quotes;

/// Share of its confidence that a score loses for each point by which judge and built-in scorer differ. Not calibrated: it
/// says that one of the two is wrong.
const LOSS_PER_POINT: f64 = 0.15;

/// How a handoff smoothness was found.
const BY_JUDGE: &str = "judge";

/// An answer that may be used: its quotes are looked up, and it is known what stands of it.
#[derive(Debug, Clone)]
pub(crate) struct Judgement {
    pub answer: Answer,
    pub quotes: Quotes,
    pub ruling: Ruling,
}

/// The built-in evaluation with the judge's findings in place of its own.
pub(crate) fn judged(
    builtin: Evaluation,
    judgement: Judgement,
    policy: JudgePolicy,
    model: &str,
    usage: JudgeUse,
) -> Evaluation {
    let Judgement { answer, quotes, ruling } = judgement;
    let mut evaluation = marked(builtin, ScorerKind::Judge, model, usage);
    let mut book = EvidenceBook { evidence: &mut evaluation.evidence };
    if let Some(axis) = &mut evaluation.axis {
        let dimensions = &mut axis.dimensions;
        let accuracy = book.indices(quotes.resolution_accuracy);
        Seat::of(&mut dimensions.resolution_accuracy).give(
            answer.resolution_accuracy,
            ruling.resolution_accuracy,
            accuracy,
        );
        let effort = book.indices(quotes.interaction_effort);
        Seat::of(&mut dimensions.interaction_effort).give(
            answer.interaction_effort,
            ruling.interaction_effort,
            effort,
        );
        if let Some((given, ruled)) = answer.handoff_smoothness.zip(ruling.handoff_smoothness) {
            let smoothness = &mut dimensions.handoff_smoothness;
            smoothness.applicable |= ruled < Score::MAX;
            BY_JUDGE.clone_into(&mut smoothness.basis);
            Seat::of_handoff(smoothness).give(given, ruled, book.indices(quotes.handoff_smoothness));
        }
        add_up(axis, ruling.resolution.status);
    }
    let ruled = ruling.resolution;
    let resolution = &mut evaluation.resolution;
    let confirmed = answer.resolution.finding.basis == ResolutionBasis::CustomerConfirmed;
    resolution.customer_confirmed =
        confirmed || (resolution.customer_confirmed && ruled.status == ResolutionStatus::Resolved);
    resolution.status = ruled.status;
    resolution.resolved_by = ruled.resolved_by;
    resolution.basis = ruled.basis;
    resolution.confidence = ruled.confidence;
    resolution.reason = answer.resolution.reason;
    resolution.evidence = book.indices(quotes.resolution);
    evaluation.charge = ruled.charge;
    show(&mut evaluation, ruling.difference, policy);
    evaluation
}

/// The built-in evaluation as it is, marked as what stands in for the judge's.
pub(crate) fn fallen_back(builtin: Evaluation, model: &str, usage: JudgeUse) -> Evaluation {
    marked(builtin, ScorerKind::Fallback, model, usage)
}

fn marked(mut evaluation: Evaluation, kind: ScorerKind, model: &str, usage: JudgeUse) -> Evaluation {
    evaluation.scorer.kind = kind;
    evaluation.scorer.judge_model = Some(model.to_owned());
    evaluation.scorer.judge = Some(usage);
    evaluation
}

/// That the readers differ is always shown. Where the judge only advises, a person decides on the charge.
fn show(evaluation: &mut Evaluation, difference: Difference, policy: JudgePolicy) {
    if difference == Difference::Nothing {
        return;
    }
    evaluation.flags.push(Flag::JudgeDisagrees);
    let is_charged = evaluation.charge.assessment != ChargeAssessment::NotApplicable;
    if policy == JudgePolicy::Advise && difference == Difference::Charge && is_charged {
        evaluation.charge.assessment = ChargeAssessment::Review;
    }
}

/// Where a dimension keeps what a scorer says of it.
struct Seat<'d> {
    score: &'d mut Score,
    confidence: &'d mut Confidence,
    reason: &'d mut String,
    signals: &'d mut Vec<Signal>,
}

impl<'d> Seat<'d> {
    fn of(dimension: &'d mut Dimension) -> Self {
        let Dimension { score, confidence, reason, signals } = dimension;
        Self { score, confidence, reason, signals }
    }

    fn of_handoff(dimension: &'d mut HandoffDimension) -> Self {
        let HandoffDimension { score, confidence, reason, signals, .. } = dimension;
        Self { score, confidence, reason, signals }
    }

    /// The judge's score beside the built-in signals, with its difference to the built-in score. One that was limited is the
    /// built-in score, and keeps its reason.
    fn give(self, given: Part<Score>, ruled: Score, evidence: Vec<usize>) {
        let own = self.score.value();
        let by_judge = hundredths(given.finding.value() - own);
        let by_rules = hundredths(ruled.value() - given.finding.value());
        let difference = (given.finding.value() - own).abs();
        *self.confidence = Confidence::nearest(self.confidence.value() * (1.0 - LOSS_PER_POINT * difference));
        *self.score = ruled;
        self.signals.insert(0, Signal { code: "JUDGE".to_owned(), effect: by_judge, evidence });
        if by_rules == 0.0 {
            *self.reason = given.reason;
        } else {
            let limited =
                Signal { code: "LIMITED_BY_RULES".to_owned(), effect: by_rules, evidence: Vec::new() };
            self.signals.insert(1, limited);
        }
        self.signals.sort_by(|one, other| other.effect.abs().total_cmp(&one.effect.abs()));
    }
}

/// Rounded as all signals are, so that equal results are equal bytes.
fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// AXIS and its band, of the three scores and whether the issue was solved.
fn add_up(axis: &mut Axis, status: ResolutionStatus) {
    let dimensions = &axis.dimensions;
    let two = [dimensions.resolution_accuracy.score, dimensions.interaction_effort.score];
    let three = [two[0], two[1], dimensions.handoff_smoothness.score];
    axis.score = Score::mean(&three).unwrap_or(Score::MIN);
    axis.excluding_handoff = Score::mean(&two).unwrap_or(Score::MIN);
    axis.band =
        AxisBand::of(axis.score, axis.excluding_handoff, dimensions.handoff_smoothness.applicable, status);
}

/// The evaluation's quotes, each kept once.
struct EvidenceBook<'e> {
    evidence: &'e mut Vec<Evidence>,
}

impl EvidenceBook<'_> {
    fn indices(&mut self, quotes: Vec<Evidence>) -> Vec<usize> {
        quotes.into_iter().map(|quote| self.index(quote)).collect()
    }

    fn index(&mut self, quote: Evidence) -> usize {
        self.evidence.iter().position(|known| *known == quote).unwrap_or_else(|| {
            self.evidence.push(quote);
            self.evidence.len() - 1
        })
    }
}
