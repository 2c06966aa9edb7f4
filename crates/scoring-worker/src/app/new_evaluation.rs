//! What is stored of an outcome, and told.

use std::sync::Arc;

use assay_contracts::announcement::{AnnouncedAudit, AnnouncedOutcome, EvaluationAnnounced};
use assay_contracts::evaluation::{Evaluation, EvaluationStatus};
use assay_contracts::event::{ConversationEvaluated, EvaluationOutcome, TicketFacts};
use assay_contracts::ids::{EventId, OrganizationId};
use assay_messaging::{EncodeError, OutgoingEvent};
use assay_platform::runtime::{RequestContext, new_id, now};
use assay_scoring::SCORER_VERSION;
use serde_json::value::to_raw_value;

use super::interest::Interest;
use crate::store::{NewEvaluation, Status};

/// An evaluation cannot be written as JSON.
#[derive(Debug, Clone, thiserror::Error)]
#[error("evaluation could not be written as JSON: {0}")]
pub(crate) struct UnwritableEvaluation(Arc<dyn std::error::Error + Send + Sync>);

impl From<EncodeError> for UnwritableEvaluation {
    fn from(error: EncodeError) -> Self {
        Self(Arc::new(error))
    }
}

/// The evaluation that `event_id` led to, and that request before it.
pub(super) fn new_evaluation(
    event_id: EventId,
    context: Option<RequestContext>,
    organization_id: OrganizationId,
    ticket: TicketFacts,
    outcome: EvaluationOutcome,
    interest: &Interest,
) -> Result<NewEvaluation, UnwritableEvaluation> {
    let told = interest.includes(organization_id).then(|| in_short(&outcome));
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
    let announced = told.map(|outcome| announcement(context.clone(), &evaluated, outcome)).transpose()?;
    let scorer_version = SCORER_VERSION.to_owned();
    Ok(NewEvaluation { asking_event_id: event_id, context, evaluated, status, scorer_version, announced })
}

/// What webhooks is told of it: nothing that a customer wrote.
fn announcement<E>(
    context: Option<RequestContext>,
    evaluated: &ConversationEvaluated<E>,
    outcome: AnnouncedOutcome,
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

fn in_short(outcome: &EvaluationOutcome) -> AnnouncedOutcome {
    let evaluation = match outcome {
        EvaluationOutcome::Evaluated { evaluation } => evaluation,
        EvaluationOutcome::Failed { error_message } => {
            return AnnouncedOutcome::Failed { error_message: error_message.clone() };
        }
    };
    let audit = AnnouncedAudit {
        resolution_status: evaluation.resolution.status,
        resolved_by: evaluation.resolution.resolved_by,
        charge_assessment: evaluation.charge.assessment,
        charge_reasons: evaluation.charge.reasons.clone(),
        scorer: evaluation.scorer.kind,
    };
    match &evaluation.axis {
        Some(axis) => AnnouncedOutcome::Scored { axis_score: axis.score, axis_band: axis.band, audit },
        None => AnnouncedOutcome::NotApplicable { audit },
    }
}

fn status_of(evaluation: &Evaluation) -> Status {
    match evaluation.status {
        EvaluationStatus::Scored => Status::Scored,
        EvaluationStatus::NotApplicable => Status::NotApplicable,
    }
}
