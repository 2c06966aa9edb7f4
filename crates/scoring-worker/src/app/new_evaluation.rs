//! Builds the stored evaluation and its events from the outcome of a scorer.

use std::sync::Arc;

use assay_contracts::evaluation::{Evaluation, EvaluationStatus};
use assay_contracts::event::{ConversationEvaluated, EvaluationOutcome, TicketFacts};
use assay_contracts::ids::{EventId, OrganizationId};
use assay_contracts::notification::{
    EvaluationAnnounced, EvaluationNotificationAudit, EvaluationNotificationOutcome,
};
use assay_messaging::{EncodeError, OutgoingEvent};
use assay_platform::runtime::{RequestContext, new_id, now};
use assay_scoring::SCORER_VERSION;
use serde_json::value::to_raw_value;

use super::webhook_subscribers::WebhookSubscribers;
use crate::store::{NewEvaluation, Status};

#[derive(Debug, Clone, thiserror::Error)]
#[error("evaluation could not be written as JSON: {0}")]
pub(crate) struct UnwritableEvaluation(Arc<dyn std::error::Error + Send + Sync>);

impl From<EncodeError> for UnwritableEvaluation {
    fn from(error: EncodeError) -> Self {
        Self(Arc::new(error))
    }
}

/// The evaluation to be stored, with its events. `event_id` and `context` identify the event and the request that led to it.
pub(super) fn new_evaluation(
    event_id: EventId,
    context: Option<RequestContext>,
    organization_id: OrganizationId,
    ticket: TicketFacts,
    outcome: EvaluationOutcome,
    subscribers: &WebhookSubscribers,
) -> Result<NewEvaluation, UnwritableEvaluation> {
    let summary = subscribers.includes(organization_id).then(|| summarize(&outcome));
    let (status, outcome) = match outcome {
        EvaluationOutcome::Evaluated { evaluation } => {
            // Serialized once, for the table and for the event.
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
        // Assigned by the store.
        sequence: 0,
    };
    let announced_event =
        summary.map(|outcome| announced_event(context.clone(), &evaluated, outcome)).transpose()?;
    let scorer_version = SCORER_VERSION.to_owned();
    Ok(NewEvaluation {
        source_event_id: event_id,
        context,
        evaluated,
        status,
        scorer_version,
        announced_event,
    })
}

/// The event for webhooks. It contains no customer text.
fn announced_event<E>(
    context: Option<RequestContext>,
    evaluated: &ConversationEvaluated<E>,
    outcome: EvaluationNotificationOutcome,
) -> Result<OutgoingEvent, EncodeError> {
    let ticket = &evaluated.ticket;
    let announced = EvaluationAnnounced {
        organization_id: evaluated.organization_id,
        ticket_id: ticket.id,
        external_ticket_id: ticket.external_id.clone(),
        source: ticket.source.clone(),
        source_account_id: ticket.source_account_id.clone(),
        evaluation_id: evaluated.evaluation_id,
        evaluated_at: evaluated.evaluated_at,
        outcome,
    };
    OutgoingEvent::following(context, new_id(), evaluated.evaluated_at, &announced)
}

fn summarize(outcome: &EvaluationOutcome) -> EvaluationNotificationOutcome {
    let evaluation = match outcome {
        EvaluationOutcome::Evaluated { evaluation } => evaluation,
        EvaluationOutcome::Failed { error_message } => {
            return EvaluationNotificationOutcome::Failed { error_message: error_message.clone() };
        }
    };
    let audit = EvaluationNotificationAudit {
        resolution_status: evaluation.resolution.status,
        resolved_by: evaluation.resolution.resolved_by,
        charge_assessment: evaluation.charge.assessment,
        charge_reasons: evaluation.charge.reasons.clone(),
        scorer: evaluation.scorer.kind,
    };
    match &evaluation.axis {
        Some(axis) => {
            EvaluationNotificationOutcome::Scored { axis_score: axis.score, axis_band: axis.band, audit }
        }
        None => EvaluationNotificationOutcome::NotApplicable { audit },
    }
}

fn status_of(evaluation: &Evaluation) -> Status {
    match evaluation.status {
        EvaluationStatus::Scored => Status::Scored,
        EvaluationStatus::NotApplicable => Status::NotApplicable,
    }
}
