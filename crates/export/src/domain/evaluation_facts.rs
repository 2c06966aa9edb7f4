//! Facts: what lists filter, sort and show of a ticket and its latest evaluation.

use assay_contracts::evaluation::{Confidence, Score};
use assay_contracts::evaluations::{
    EvaluationItem, ItemEvaluation, ItemScores, ItemTicket, ResultStatus, words_of,
};
use assay_contracts::event::ConversationEvaluated;
use assay_contracts::ids::{EvaluationId, OrganizationId};
use assay_contracts::ticket::MAX_SUBJECT_CHARS;
use assay_contracts::time::Timestamp;
use assay_contracts::validation::shortened;

use super::csv::EventFields;
use super::facets::{self, Facets};

/// Facts of the latest evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatestEvaluation {
    pub evaluation_id: EvaluationId,
    pub evaluated_at: Timestamp,
    pub facets: Facets,
    pub scores: Option<Scores>,
    pub language: Option<String>,
}

/// AXIS, its parts and their lowest confidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scores {
    pub axis: Score,
    pub resolution_accuracy: Score,
    pub interaction_effort: Score,
    pub handoff_smoothness: Score,
    pub confidence: Confidence,
}

/// One row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluationFacts {
    pub organization_id: OrganizationId,
    /// The same for all evaluations of the ticket.
    pub ticket: ItemTicket,
    pub evaluation: LatestEvaluation,
}

impl EvaluationFacts {
    pub fn of(event: &ConversationEvaluated) -> Self {
        let fields = EventFields::of(event);
        let status = match fields.evaluation {
            None => ResultStatus::Failed,
            Some(_) if fields.axis().is_some() => ResultStatus::Scored,
            Some(_) => ResultStatus::NotApplicable,
        };
        let ticket = &event.ticket;
        Self {
            organization_id: event.organization_id,
            ticket: ItemTicket {
                id: ticket.id,
                started_at: ticket.started_at,
                ended_at: ticket.ended_at,
                imported_at: ticket.imported_at,
                external_id: ticket.external_id.clone(),
                source: ticket.source.clone(),
                source_account_id: ticket.source_account_id.clone(),
                subject: shortened(ticket.subject.as_deref().unwrap_or_default(), MAX_SUBJECT_CHARS),
                agents: ticket.agents.clone(),
            },
            evaluation: LatestEvaluation {
                evaluation_id: event.evaluation_id,
                evaluated_at: event.evaluated_at,
                facets: Facets::of(status, fields.evaluation),
                scores: scores(&fields),
                language: fields.evaluation.map(|evaluation| evaluation.language.clone()),
            },
        }
    }

    /// The words of the subject, each between spaces: the text contains ` word ` exactly if the subject has the word.
    pub fn subject_words(&self) -> String {
        let mut text = String::from(" ");
        for word in words_of(&self.ticket.subject) {
            text.push_str(&word);
            text.push(' ');
        }
        text
    }

    /// The public representation.
    pub fn into_item(self) -> EvaluationItem {
        let Self { ticket, evaluation, .. } = self;
        let facets = evaluation.facets;
        EvaluationItem {
            ticket,
            evaluation: ItemEvaluation {
                id: evaluation.evaluation_id,
                status: facets.value(facets::STATUS).unwrap_or(ResultStatus::Failed),
                evaluated_at: evaluation.evaluated_at,
                scores: evaluation.scores.zip(facets.value(facets::BAND)).map(|(scores, band)| ItemScores {
                    axis: scores.axis,
                    band,
                    resolution_accuracy: scores.resolution_accuracy,
                    interaction_effort: scores.interaction_effort,
                    handoff_smoothness: scores.handoff_smoothness,
                    confidence: scores.confidence,
                }),
                ai_involvement: facets.value(facets::INVOLVEMENT),
                ai_tools: facets.values(facets::AI_TOOLS),
                resolution: facets.value(facets::RESOLUTION),
                resolved_by: facets.value(facets::RESOLVED_BY),
                basis: facets.value(facets::BASIS),
                charge: facets.value(facets::CHARGE),
                charge_reasons: facets.values(facets::CHARGE_REASONS),
                handoff: facets.value(facets::HANDOFF),
                language: evaluation.language,
                flags: facets.values(facets::FLAGS),
                scorer: facets.value(facets::SCORER),
            },
        }
    }
}

impl Scores {
    /// AXIS, its three parts in tenths, and the confidence in hundredths; `None` without any of them.
    pub fn from_stored(stored: [Option<i16>; 5]) -> Option<Self> {
        let [axis, resolution_accuracy, interaction_effort, handoff_smoothness, confidence] = stored;
        let score = |tenths: Option<i16>| Score::from_tenths(i64::from(tenths?));
        Some(Self {
            axis: score(axis)?,
            resolution_accuracy: score(resolution_accuracy)?,
            interaction_effort: score(interaction_effort)?,
            handoff_smoothness: score(handoff_smoothness)?,
            confidence: Confidence::from_hundredths(i64::from(confidence?))?,
        })
    }
}

fn scores(fields: &EventFields<'_>) -> Option<Scores> {
    let (axis, dimensions) = (fields.axis()?, fields.dimensions()?);
    Some(Scores {
        axis: axis.score,
        resolution_accuracy: dimensions.resolution_accuracy.score,
        interaction_effort: dimensions.interaction_effort.score,
        handoff_smoothness: dimensions.handoff_smoothness.score,
        confidence: fields.lowest_confidence()?,
    })
}
