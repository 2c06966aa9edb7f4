//! Laying a judge's answer over a built-in evaluation.

use assay_contracts::evaluation::{
    Axis, AxisBand, Confidence, Dimension, Evaluation, Evidence, JudgeUse, Score, ScorerKind, Signal,
};
use assay_scoring::Ruling;

use crate::answer::{Answer, Part};
use crate::evidence::Quotes;

/// Share of its confidence that a score loses for each point by which judge and built-in scorer differ. Not calibrated: it
/// says that one of the two is wrong.
const LOSS_PER_POINT: f64 = 0.15;

/// An answer that may be used: its quotes are looked up, the rules have spoken.
#[derive(Debug, Clone)]
pub(crate) struct Judgement {
    pub answer: Answer,
    pub quotes: Quotes,
    pub ruling: Ruling,
}

/// The built-in evaluation with the judge's findings in place of its own.
pub(crate) fn judged(builtin: Evaluation, judgement: Judgement, model: &str, usage: JudgeUse) -> Evaluation {
    let Judgement { answer, quotes, ruling } = judgement;
    let mut evaluation = marked(builtin, ScorerKind::Judge, model, usage);
    let mut book = EvidenceBook { evidence: &mut evaluation.evidence };
    if let Some(axis) = &mut evaluation.axis {
        let dimensions = &mut axis.dimensions;
        let accuracy = book.indices(quotes.resolution_accuracy);
        lay(
            &mut dimensions.resolution_accuracy,
            answer.resolution_accuracy,
            ruling.resolution_accuracy,
            accuracy,
        );
        let effort = book.indices(quotes.interaction_effort);
        lay(&mut dimensions.interaction_effort, answer.interaction_effort, ruling.interaction_effort, effort);
        add_up(axis);
    }
    if let Some(ruled) = ruling.resolution {
        let resolution = &mut evaluation.resolution;
        resolution.status = ruled.status;
        resolution.resolved_by = ruled.resolved_by;
        resolution.basis = ruled.basis;
        resolution.confidence = ruled.confidence;
        resolution.reason = answer.resolution.reason;
        resolution.evidence = book.indices(quotes.resolution);
        evaluation.charge = ruled.charge;
    }
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

/// The judge's score beside the built-in signals: together they still add up to the score.
fn lay(dimension: &mut Dimension, given: Part<Score>, ruled: Score, evidence: Vec<usize>) {
    let by_judge = hundredths(given.finding.value() - dimension.score.value());
    let by_rules = hundredths(ruled.value() - given.finding.value());
    let difference = (ruled.value() - dimension.score.value()).abs();
    dimension.confidence =
        Confidence::nearest(dimension.confidence.value() * (1.0 - LOSS_PER_POINT * difference));
    dimension.score = ruled;
    dimension.reason = given.reason;
    dimension.signals.insert(0, Signal { code: "JUDGE".to_owned(), effect: by_judge, evidence });
    if by_rules != 0.0 {
        let limited = Signal { code: "LIMITED_BY_RULES".to_owned(), effect: by_rules, evidence: Vec::new() };
        dimension.signals.insert(1, limited);
    }
    dimension.signals.sort_by(|one, other| other.effect.abs().total_cmp(&one.effect.abs()));
}

/// Rounded as all signals are, so that equal results are equal bytes.
fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn add_up(axis: &mut Axis) {
    let dimensions = &axis.dimensions;
    let two = [dimensions.resolution_accuracy.score, dimensions.interaction_effort.score];
    let three = [two[0], two[1], dimensions.handoff_smoothness.score];
    axis.score = Score::mean(&three).unwrap_or(Score::MIN);
    axis.band = AxisBand::of(axis.score);
    axis.excluding_handoff = Score::mean(&two).unwrap_or(Score::MIN);
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
