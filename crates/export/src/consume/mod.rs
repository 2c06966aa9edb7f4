//! The events that this role takes from the bus.

mod conversation_evaluated;
mod evaluation_deleted;

use assay_messaging::Outcome;

pub(crate) use self::conversation_evaluated::{ConversationEvaluatedHandler, subscription};
pub(crate) use self::evaluation_deleted::{EvaluationDeletedHandler, subscription as deletions_subscription};

/// Whether it is an outage or a mistake of ours: a later attempt may succeed, and the last one makes it a dead letter
/// that somebody looks at.
fn retry(reason: &str) -> Outcome {
    Outcome::Retry { reason: reason.to_owned() }
}
