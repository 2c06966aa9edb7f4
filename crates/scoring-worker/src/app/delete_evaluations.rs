//! Deleting the evaluations of tickets that were deleted, whether there is one already or not.

use assay_contracts::announcement::EvaluationRetracted;
use assay_contracts::event::{ConversationDeleted, EvaluationDeleted};
use assay_contracts::ids::EventId;
use assay_messaging::OutgoingEvent;
use assay_platform::runtime::{new_id, now};

use super::Interest;
use super::handle_error::HandleError;
use crate::store::{DeletedEvaluation, EvaluationStore};

/// Takes the place of the evaluations for good, and tells the others, each once however often an event comes.
pub(crate) async fn delete_evaluations(
    store: &dyn EvaluationStore,
    interest: &Interest,
    events: Vec<(EventId, ConversationDeleted)>,
) -> Result<(), HandleError> {
    let mut deletions = Vec::with_capacity(events.len());
    for (event_id, deleted) in events {
        let ConversationDeleted { organization_id, ticket_id, deleted_at } = deleted;
        let told = EvaluationDeleted { organization_id, ticket_id, deleted_at };
        let deleted_event = OutgoingEvent::new(new_id(), now(), &told)?;
        // Whoever was told of it may have lost interest since: deletions are rare, and always told.
        let retracted = EvaluationRetracted { organization_id, ticket_id, deleted_at };
        let retracted_event =
            interest.is_on().then(|| OutgoingEvent::new(new_id(), now(), &retracted)).transpose()?;
        let deletion = DeletedEvaluation {
            event_id,
            deleted_event,
            retracted_event,
            organization_id,
            ticket_id,
            deleted_at,
        };
        deletions.push(deletion);
    }
    Ok(store.delete(deletions).await?)
}
