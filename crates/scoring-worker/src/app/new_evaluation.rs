//! What is stored of an outcome, and told.

use std::sync::Arc;

use assay_contracts::evaluation::{Evaluation, EvaluationStatus};
use assay_contracts::event::{ConversationEvaluated, EvaluationOutcome, TicketFacts};
use assay_contracts::ids::{EventId, OrganizationId};
use assay_platform::runtime::{RequestContext, new_id, now};
use assay_scoring::SCORER_VERSION;
use serde_json::value::to_raw_value;

use crate::metrics;
use crate::store::{NewEvaluation, Status};

/// An evaluation cannot be written as JSON.
#[derive(Debug, Clone, thiserror::Error)]
#[error("evaluation could not be written as JSON: {0}")]
pub(crate) struct UnwritableEvaluation(Arc<serde_json::Error>);

/// The evaluation that `event_id` led to, and that request before it.
pub(super) fn new_evaluation(
    event_id: EventId,
    context: Option<RequestContext>,
    organization_id: OrganizationId,
    ticket: TicketFacts,
    outcome: EvaluationOutcome,
) -> Result<NewEvaluation, UnwritableEvaluation> {
    metrics::evaluated(&outcome);
    let (status, outcome) = match outcome {
        EvaluationOutcome::Evaluated { evaluation } => {
            // Written once: for the table and for the event.
            let document =
                to_raw_value(&evaluation).map_err(|error| UnwritableEvaluation(Arc::new(error)))?;
            (status_of(&evaluation), EvaluationOutcome::Evaluated { evaluation: document })
        }
        EvaluationOutcome::Failed { error_message } => {
            (Status::Failed, EvaluationOutcome::Failed { error_message })
        }
    };
    let evaluated = ConversationEvaluated {
        organization_id,
        ticket,
        evaluation_id: new_id(),
        evaluated_at: now(),
        outcome,
        // Known when it is stored.
        sequence: None,
    };
    let scorer_version = SCORER_VERSION.to_owned();
    Ok(NewEvaluation { asking_event_id: event_id, context, evaluated, status, scorer_version })
}

fn status_of(evaluation: &Evaluation) -> Status {
    match evaluation.status {
        EvaluationStatus::Scored => Status::Scored,
        EvaluationStatus::NotApplicable => Status::NotApplicable,
    }
}
