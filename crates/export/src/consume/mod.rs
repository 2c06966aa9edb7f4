//! Event handlers.

mod conversation_evaluated;
mod evaluation_deleted;

pub(crate) use self::conversation_evaluated::{ConversationEvaluatedHandler, subscription};
pub(crate) use self::evaluation_deleted::{EvaluationDeletedHandler, subscription as deletions_subscription};
