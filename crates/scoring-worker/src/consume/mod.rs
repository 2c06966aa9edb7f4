//! Event handlers.

mod conversation_accepted;
mod conversation_deleted;
mod conversations_expired;

pub use self::conversation_accepted::QUEUE;
pub(crate) use self::conversation_accepted::{
    ConversationAcceptedHandler, PARKED_QUEUE, subscription as accepted_subscription,
};
pub use self::conversation_deleted::QUEUE as DELETED_QUEUE;
pub(crate) use self::conversation_deleted::{
    ConversationDeletedHandler, subscription as deleted_subscription,
};
pub use self::conversations_expired::QUEUE as EXPIRED_QUEUE;
pub(crate) use self::conversations_expired::{
    ConversationsExpiredHandler, subscription as expired_subscription,
};
