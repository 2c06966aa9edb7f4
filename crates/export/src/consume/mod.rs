//! Event handlers.

mod conversation_evaluated;
mod evaluation_deleted;

use assay_messaging::Outcome;

pub(crate) use self::conversation_evaluated::{ConversationEvaluatedHandler, subscription};
pub(crate) use self::evaluation_deleted::{EvaluationDeletedHandler, subscription as deletions_subscription};

/// Outage or bug: a later attempt may succeed, and after the last one the event is a dead letter for an operator.
fn retry(reason: &str) -> Outcome {
    Outcome::Retry { reason: reason.to_owned() }
}
