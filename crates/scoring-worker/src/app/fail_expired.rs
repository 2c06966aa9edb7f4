//! Giving up conversations whose transcripts are gone: each has one evaluation, and it says why it failed.

use assay_contracts::evaluation::Evaluation;
use assay_contracts::event::{ConversationEvaluated, ConversationsExpired, EvaluationOutcome, Event};
use assay_contracts::ids::EventId;

use assay_messaging::outbox::Handover;

use super::Interest;
use super::handle_error::HandleError;
use super::new_evaluation::new_evaluation;
use crate::metrics;
use crate::store::EvaluationStore;

/// What a person reads.
const FAILURE: &str = "the conversation could not be evaluated before its transcript was removed, because the period for \
                       which your organization keeps transcripts had passed";

/// Records a failure for those of the conversations that have no evaluation.
pub(crate) async fn fail_expired(
    store: &dyn EvaluationStore,
    interest: &Interest,
    events: Vec<(EventId, ConversationsExpired)>,
) -> Result<(), HandleError> {
    let mut failures = Vec::new();
    for (event_id, expired) in events {
        let organization_id = expired.organization_id;
        for ticket in expired.tickets {
            let outcome = EvaluationOutcome::Failed { error_message: FAILURE.to_owned() };
            failures.push(new_evaluation(event_id, None, organization_id, ticket, outcome, interest)?);
        }
    }
    let events = store.record(failures, Handover::NONE).await?;
    // Most of the conversations were evaluated in time, and are passed over.
    let failed =
        events.iter().filter(|event| event.topic() == ConversationEvaluated::<Box<Evaluation>>::TOPIC.name);
    metrics::failed(failed.count());
    Ok(())
}
