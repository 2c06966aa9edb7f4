//! Records a failed evaluation for conversations whose transcripts were removed before they were evaluated.

use std::sync::Arc;

use assay_contracts::evaluation::Evaluation;
use assay_contracts::event::{ConversationEvaluated, ConversationsExpired, EvaluationOutcome, Event};
use assay_contracts::ids::EventId;
use assay_messaging::outbox::FastPathClaim;

use super::WebhookSubscribers;
use super::handle_error::HandleError;
use super::new_evaluation::new_evaluation;
use crate::metrics;
use crate::store::EvaluationStore;

/// Error message of the failed evaluations.
const FAILURE: &str = "the conversation could not be evaluated before its transcript was removed, because the period for \
                       which your organization keeps transcripts had passed";

/// Records a failure for each of the conversations that has no evaluation.
pub(crate) async fn fail_expired(
    store: &EvaluationStore,
    subscribers: &WebhookSubscribers,
    events: &[(EventId, ConversationsExpired)],
) -> Result<(), HandleError> {
    let mut failures = Vec::new();
    for (event_id, expired) in events {
        let organization_id = expired.organization_id;
        for ticket in expired.tickets.iter().cloned() {
            let outcome = EvaluationOutcome::Failed { error_message: FAILURE.to_owned() };
            failures.push(new_evaluation(*event_id, None, organization_id, ticket, outcome, subscribers)?);
        }
    }
    let events = store.record(Arc::new(failures), FastPathClaim::NONE).await?;
    // `record` skips the conversations that were evaluated in time.
    let failed =
        events.iter().filter(|event| event.topic() == ConversationEvaluated::<Box<Evaluation>>::TOPIC.name);
    metrics::count_failed(failed.count());
    Ok(())
}
