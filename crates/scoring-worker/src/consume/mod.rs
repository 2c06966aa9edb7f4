//! The events that this role takes from the bus.

mod conversation_accepted;

pub use self::conversation_accepted::QUEUE;
pub(crate) use self::conversation_accepted::{ConversationAcceptedHandler, subscription};
