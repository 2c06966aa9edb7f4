//! The order of the work: read, follow the customer, measure, score, audit, explain.

use assay_contracts::conversation::Conversation;
use assay_contracts::evaluation::{
    Axis, AxisBand, Confidence, Counts, Dimension, Dimensions, Evaluation, EvaluationStatus,
    HandoffDimension, Resolution, SCHEMA_VERSION, Score, Scorer as ScorerRecord, ScorerKind,
};

use crate::audit::{Verdict, charge};
use crate::customer::{CustomerCourse, EndState};
use crate::doubt::Doubts;
use crate::effort::EffortFindings;
use crate::explanation::{EvidenceBook, Narrator, handoff_signals, signals};
use crate::facts;
use crate::features::{Observations, extract};
use crate::handoff::HandoffFindings;
use crate::model::{Guards, ModelledDimension, Scored};
use crate::sentiment::sentiment;
use crate::transcript::Transcript;
use crate::{SCORER_VERSION, Scorer};

/// How sure the rules for handoffs are: they read facts, except where a promise must be understood.
const HANDOFF_CONFIDENCE: f64 = 0.85;

/// Everything found out about one conversation, before it is written down.
struct Findings<'t, 'a> {
    transcript: &'t Transcript<'a>,
    course: &'t CustomerCourse,
    effort: &'t EffortFindings,
    handoff: &'t HandoffFindings,
    doubts: &'t Doubts,
}

/// What the models and the guards say.
struct Scores {
    resolution_accuracy: Scored,
    interaction_effort: Scored,
}

impl Scores {
    fn of(scorer: &Scorer, findings: &Findings<'_, '_>) -> Self {
        let Findings { transcript, course, effort, handoff, .. } = *findings;
        let seen = scorer.weights.see(extract(&Observations { transcript, course, effort }), transcript);
        let guards = Guards { transcript, course, effort, handoff };
        let score = |dimension| scorer.weights.score(dimension, &seen, &guards);
        Self {
            resolution_accuracy: score(ModelledDimension::ResolutionAccuracy),
            interaction_effort: score(ModelledDimension::InteractionEffort),
        }
    }
}

/// Evaluates one conversation.
pub(crate) fn evaluate(scorer: &Scorer, conversation: &Conversation) -> Evaluation {
    let transcript = Transcript::read(&scorer.reader.lexicon, conversation);
    let course = CustomerCourse::of(&transcript);
    let effort = EffortFindings::of(&transcript);
    let handoff = HandoffFindings::of(&transcript, &course, &effort);
    let doubts = Doubts::of(&transcript, &handoff);
    let counts = facts::counts(&transcript);
    let involvement = facts::involvement(&counts);
    let findings = Findings {
        transcript: &transcript,
        course: &course,
        effort: &effort,
        handoff: &handoff,
        doubts: &doubts,
    };
    let narrator =
        Narrator { course: &course, effort: &effort, handoff: &handoff, doubts: &doubts, involvement };
    let scores = is_scorable(&counts).then(|| Scores::of(scorer, &findings));
    let accuracy = scores.as_ref().map(|scores| scores.resolution_accuracy.score);
    let verdict = Verdict::of(&transcript, &course, &handoff)
        .weighed(accuracy, scorer.weights.resolution_thresholds())
        .under(scorer.policy, &handoff);
    let confidence = Confidence::nearest(verdict.certainty * doubts.factor());
    let mut book = EvidenceBook::new(&transcript);
    let resolution = resolution(&findings, &narrator, &verdict, confidence, &mut book);
    let axis = scores.map(|scores| axis(scorer, &findings, &scores, &narrator, &mut book));
    Evaluation {
        external_ticket_id: conversation.ticket_id.clone(),
        status: if axis.is_some() { EvaluationStatus::Scored } else { EvaluationStatus::NotApplicable },
        schema_version: SCHEMA_VERSION,
        transcript_sha256: facts::transcript_sha256(conversation),
        language: transcript.language.code().to_owned(),
        ai_involvement: involvement,
        ai_tools: facts::ai_tools(&transcript),
        axis,
        resolution,
        charge: charge(involvement, &verdict, &course, &handoff, &doubts, confidence.value(), scorer.policy),
        handoff: handoff.handoff.clone(),
        sentiment: sentiment(&transcript, &course),
        effort: effort.effort,
        counts,
        timeline: facts::timeline(&transcript),
        evidence: book.into_evidence(),
        flags: doubts.flags.clone(),
        scorer: ScorerRecord {
            kind: ScorerKind::Builtin,
            version: SCORER_VERSION.to_owned(),
            weights_sha256: scorer.weights.sha256().to_owned(),
            judge_model: None,
            judge: None,
        },
    }
}

/// AXIS needs an AI agent who wrote and a customer who did.
const fn is_scorable(counts: &Counts) -> bool {
    counts.ai > 0 && counts.customer > 0
}

fn resolution(
    findings: &Findings<'_, '_>,
    narrator: &Narrator<'_>,
    verdict: &Verdict,
    confidence: Confidence,
    book: &mut EvidenceBook<'_, '_>,
) -> Resolution {
    let decided = findings.course.decided_by.filter(|(item, _)| Some(*item) == verdict.item);
    let phrase = decided.and_then(|(_, phrase)| phrase);
    let evidence = verdict.item.and_then(|item| book.quote(item, phrase)).into_iter().collect();
    Resolution {
        status: verdict.status,
        resolved_by: verdict.resolved_by,
        basis: verdict.basis,
        customer_confirmed: findings.course.end == EndState::Confirmed,
        confidence,
        reason: narrator.resolution(verdict),
        evidence,
    }
}

fn axis(
    scorer: &Scorer,
    findings: &Findings<'_, '_>,
    scores: &Scores,
    narrator: &Narrator<'_>,
    book: &mut EvidenceBook<'_, '_>,
) -> Axis {
    let Findings { transcript, course, effort, handoff, doubts } = *findings;
    let Scores { resolution_accuracy: resolution, interaction_effort: ease } = scores;
    let agreement = scorer.weights.agreement(course.end);
    let mut dimension = |scored: &Scored, agreement: f64, reason: String| Dimension {
        score: scored.score,
        confidence: Confidence::nearest(agreement * doubts.factor()),
        reason,
        signals: signals(scored, course, effort, transcript, book),
    };
    let resolution_accuracy =
        dimension(resolution, agreement.resolution_accuracy, narrator.resolution_accuracy(resolution));
    let interaction_effort = dimension(ease, agreement.interaction_effort, narrator.interaction_effort(ease));
    let handoff_smoothness = HandoffDimension {
        score: Score::nearest(handoff.score),
        confidence: Confidence::nearest(HANDOFF_CONFIDENCE * doubts.factor()),
        reason: narrator.handoff_smoothness(),
        signals: handoff_signals(handoff, transcript, book),
        applicable: handoff.applicable,
        basis: "rules".to_owned(),
    };
    let two = [resolution_accuracy.score, interaction_effort.score];
    let score = Score::mean(&[two[0], two[1], handoff_smoothness.score]).unwrap_or(Score::MIN);
    Axis {
        score,
        band: AxisBand::of(score),
        excluding_handoff: Score::mean(&two).unwrap_or(Score::MIN),
        dimensions: Dimensions { resolution_accuracy, interaction_effort, handoff_smoothness },
    }
}
