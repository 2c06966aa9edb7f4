//! Deletes the evaluations of deleted tickets. Tickets that are not evaluated yet get a tombstone, too.

use assay_contracts::event::{ConversationDeleted, EvaluationDeleted};
use assay_contracts::ids::EventId;
use assay_contracts::notification::EvaluationRetracted;
use assay_messaging::OutgoingEvent;
use assay_platform::runtime::{new_id, now};

use super::WebhookSubscribers;
use super::handle_error::HandleError;
use crate::store::{DeletedEvaluation, EvaluationStore};

/// Replaces the evaluations with tombstones and publishes the deletions. Idempotent by event id.
pub(crate) async fn delete_evaluations(
    store: &EvaluationStore,
    subscribers: &WebhookSubscribers,
    events: &[(EventId, ConversationDeleted)],
) -> Result<(), HandleError> {
    let mut deletions = Vec::with_capacity(events.len());
    for (event_id, deleted) in events {
        let &ConversationDeleted { organization_id, ticket_id, deleted_at } = deleted;
        let deleted = EvaluationDeleted { organization_id, ticket_id, deleted_at };
        let deleted_event = OutgoingEvent::new(new_id(), now(), &deleted)?;
        // Published without a webhook, too: the evaluation may have been announced to a webhook that was removed since.
        let retracted = EvaluationRetracted { organization_id, ticket_id, deleted_at };
        let retracted_event =
            subscribers.is_enabled().then(|| OutgoingEvent::new(new_id(), now(), &retracted)).transpose()?;
        let deletion = DeletedEvaluation {
            event_id: *event_id,
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
