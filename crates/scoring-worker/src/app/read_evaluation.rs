//! Reads the evaluation of a ticket.

use assay_contracts::evaluation::{TicketEvaluation, UnscoredStatus};
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::json::JsonFault;
use assay_platform::db::DatabaseError;

use crate::store::EvaluationStore;

/// The evaluation of a ticket of this organization; `None` when there is none (yet).
pub(crate) async fn read_evaluation(
    store: &EvaluationStore,
    organization_id: OrganizationId,
    ticket_id: TicketId,
) -> Result<Option<TicketEvaluation>, DatabaseError> {
    let Some(stored) = store.find(organization_id, ticket_id).await? else { return Ok(None) };
    let evaluation = match stored.document {
        Some(document) => TicketEvaluation::Done {
            id: stored.id,
            ticket_id,
            created_at: stored.created_at,
            evaluation: serde_json::from_str(&document).map_err(|error| {
                let fault = JsonFault::of(&error);
                DatabaseError::Corrupt(format!("evaluation of ticket {ticket_id}: {fault}"))
            })?,
        },
        // Without a document: the evaluation failed. Tombstones have none, either, but are not found.
        None => TicketEvaluation::Unscored {
            ticket_id,
            status: UnscoredStatus::Failed,
            error_message: stored.error_message,
        },
    };
    Ok(Some(evaluation))
}
