//! The evaluation pipeline: read, score, audit, explain.

use assay_contracts::conversation::Conversation;
use assay_contracts::evaluation::{
    Axis, AxisBand, Confidence, Counts, Dimension, Dimensions, Evaluation, EvaluationStatus,
    HandoffDimension, Resolution, SCHEMA_VERSION, Score, Scorer as ScorerRecord, ScorerKind,
};

use crate::audit::{Verdict, charge};
use crate::course::{CustomerCourse, EndState};
use crate::effort::EffortFindings;
use crate::explanation::{EvidenceCollector, ReasonWriter, handoff_signals, signals};
use crate::facts;
use crate::handoff::HandoffFindings;
use crate::language::Language;
use crate::reader::{Reading, exp};
use crate::reliability::Reliability;
use crate::sentiment::sentiment;
use crate::transcript::Transcript;
use crate::{SCORER_VERSION, Scorer};

/// Intermediate results for one conversation.
pub(crate) struct Findings<'a> {
    pub transcript: Transcript<'a>,
    pub language: Language,
    pub reading: Reading,
    pub course: CustomerCourse,
    pub effort: EffortFindings,
    pub handoff: HandoffFindings,
    pub reliability: Reliability,
}

impl<'a> Findings<'a> {
    /// Reads a conversation.
    pub(crate) fn of(scorer: &Scorer, conversation: &'a Conversation) -> Self {
        let transcript = scorer.transcript(conversation);
        let language = Language::of(&scorer.lists.words, &transcript.items);
        let mut reading = scorer.reader.read(&transcript);
        if let Some(weights) = &scorer.weights {
            let inputs = reading.inputs();
            // `Score::nearest` limits the first two to 1–5; `HandoffFindings` compares the third with thresholds before that.
            reading.resolution_accuracy = weights.resolution_accuracy.apply(&inputs);
            reading.interaction_effort = weights.interaction_effort.apply(&inputs);
            reading.handoff_smoothness = weights.handoff_smoothness.apply(&inputs).clamp(1.0, 5.0);
        }
        let course = CustomerCourse::of(&transcript, &reading);
        let effort = EffortFindings::of(&transcript, &reading);
        let handoff = HandoffFindings::of(&transcript, &reading, &course, &effort);
        let reliability = Reliability::of(&transcript, &language);
        Self { transcript, language, reading, course, effort, handoff, reliability }
    }

    /// The built-in verdict, under the scorer's policy.
    pub(crate) fn verdict(&self, scorer: &Scorer) -> Verdict {
        let calibration = &scorer.reader.metadata().calibration;
        Verdict::of(&self.transcript, &self.reading, &self.course, &self.handoff, calibration)
            .with_policy(scorer.policy, &self.handoff)
    }
}

/// Evaluates one conversation.
pub(crate) fn evaluate(scorer: &Scorer, conversation: &Conversation) -> Evaluation {
    let findings = Findings::of(scorer, conversation);
    let Findings { transcript, language, reading, course, effort, handoff, reliability } = &findings;
    let counts = facts::counts(transcript);
    let involvement = facts::involvement(&counts);
    let reasons = ReasonWriter { course, effort, handoff, reliability, involvement };
    let verdict = findings.verdict(scorer);
    let confidence = Confidence::nearest(verdict.certainty * reliability.confidence_factor());
    let mut collector = EvidenceCollector::new(transcript);
    let resolution = Resolution {
        status: verdict.status,
        resolved_by: verdict.resolved_by,
        basis: verdict.basis,
        customer_confirmed: course.end == EndState::Confirmed,
        confidence,
        reason: reasons.resolution(&verdict),
        evidence: verdict.item.and_then(|item| collector.quote(item)).into_iter().collect(),
    };
    let axis = is_scorable(&counts).then(|| axis(scorer, &findings, &verdict, &reasons, &mut collector));
    Evaluation {
        external_ticket_id: conversation.ticket_id.clone(),
        status: if axis.is_some() { EvaluationStatus::Scored } else { EvaluationStatus::NotApplicable },
        schema_version: SCHEMA_VERSION,
        transcript_sha256: facts::transcript_sha256(conversation),
        language: language.code().to_owned(),
        ai_involvement: involvement,
        ai_tools: facts::ai_tools(transcript),
        axis,
        resolution,
        charge: charge(involvement, &verdict, course, handoff, reliability, scorer.policy),
        handoff: handoff.handoff.clone(),
        sentiment: sentiment(transcript, reading, course),
        effort: effort.effort,
        counts,
        timeline: facts::timeline(transcript),
        evidence: collector.into_evidence(),
        flags: reliability.flags.clone(),
        scorer: ScorerRecord {
            kind: ScorerKind::Builtin,
            version: SCORER_VERSION.to_owned(),
            weights_sha256: scorer.weights_sha256().to_owned(),
            judge_model: None,
            judge: None,
        },
    }
}

/// AXIS needs a message by an AI agent and one by the customer.
const fn is_scorable(counts: &Counts) -> bool {
    counts.ai > 0 && counts.customer > 0
}

fn axis(
    scorer: &Scorer,
    findings: &Findings<'_>,
    verdict: &Verdict,
    reasons: &ReasonWriter<'_>,
    collector: &mut EvidenceCollector<'_, '_>,
) -> Axis {
    let Findings { transcript, reading, course, effort, handoff, reliability, .. } = findings;
    let metadata = scorer.reader.metadata();
    // Probability that a score is within a point of the raters' score, estimated from the certainty of the verdict.
    let confidence = |[intercept, slope]: &[f64; 2]| {
        let probability = 1.0 / (1.0 + exp(-(intercept + slope * verdict.certainty)));
        Confidence::nearest(probability * reliability.confidence_factor())
    };
    let calibration = &metadata.calibration;
    let accuracy_signals =
        signals(&metadata.effects.resolution_accuracy, transcript, reading, effort, collector);
    let resolution_accuracy = Dimension {
        score: Score::nearest(reading.resolution_accuracy),
        confidence: confidence(&calibration.resolution_accuracy),
        reason: reasons.resolution_accuracy(&accuracy_signals),
        signals: accuracy_signals,
    };
    let interaction_effort = Dimension {
        score: Score::nearest(reading.interaction_effort),
        confidence: confidence(&calibration.interaction_effort),
        reason: reasons.interaction_effort(),
        signals: signals(&metadata.effects.interaction_effort, transcript, reading, effort, collector),
    };
    let handoff_smoothness = HandoffDimension {
        score: Score::nearest(handoff.score),
        confidence: confidence(&calibration.handoff_smoothness),
        reason: reasons.handoff_smoothness(),
        signals: handoff_signals(handoff, course, collector),
        applicable: handoff.applicable,
        basis: "reader".to_owned(),
    };
    let without_handoff = [resolution_accuracy.score, interaction_effort.score];
    let score = Score::mean(&[without_handoff[0], without_handoff[1], handoff_smoothness.score])
        .unwrap_or(Score::MIN);
    let excluding_handoff = Score::mean(&without_handoff).unwrap_or(Score::MIN);
    Axis {
        score,
        band: AxisBand::of(score, excluding_handoff, handoff.applicable, verdict.status),
        excluding_handoff,
        dimensions: Dimensions { resolution_accuracy, interaction_effort, handoff_smoothness },
    }
}
