//! The events that this role takes from the bus.

mod conversation_evaluated;

pub(crate) use self::conversation_evaluated::{ConversationEvaluatedHandler, subscription};
