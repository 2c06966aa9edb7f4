//! Records a failed evaluation for a conversation whose event becomes a dead letter, so that it does not stay `pending` and has
//! its row in the exports. A later evaluation, when an operator retries the dead letter, replaces it.

use std::sync::Arc;

use assay_contracts::event::EvaluationOutcome;

use super::evaluate_conversations::{Accepted, EvaluateConversations, EvaluateError};
use super::new_evaluation::new_evaluation;
use crate::metrics;

/// Error message of the failed evaluations.
const FAILURE: &str =
    "the conversation could not be evaluated: every attempt failed; the operator of Assay can repeat it";

impl EvaluateConversations {
    /// Records the failed evaluation of one conversation. Does nothing for a conversation that is evaluated already, deleted, or unknown to ingest.
    pub(crate) async fn give_up(&self, accepted: Accepted) -> Result<(), EvaluateError> {
        let reference = accepted.reference();
        let found = self.ingest.read_ticket_facts(reference).await;
        let found = found.map_err(|error| EvaluateError::Transcripts(Arc::new(error)))?;
        let Some(known) = found else { return Ok(()) };
        let outcome = EvaluationOutcome::Failed { error_message: FAILURE.to_owned() };
        let failure = new_evaluation(
            accepted.event_id,
            accepted.context,
            known.organization_id,
            known.ticket,
            outcome,
            &self.subscribers,
        );
        let failure = failure.map_err(EvaluateError::Encode)?;
        let recorded = self.store.record_given_up(failure).await;
        if recorded.map_err(|error| EvaluateError::Store(Arc::new(error)))? {
            tracing::error!(ticket_id = %reference.ticket_id, "the evaluation of a conversation is given up");
            metrics::count_failed(1);
            self.outbox.wake();
        }
        Ok(())
    }
}
