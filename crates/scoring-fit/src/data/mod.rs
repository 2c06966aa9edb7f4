//! Conversations and labels, read from files.

mod files;
mod labels;
mod reviewed;

pub use self::files::DataError;
pub(crate) use self::files::{parse_conversations, read};
pub(crate) use self::labels::Label;
pub(crate) use self::reviewed::Example;
pub use self::reviewed::ReviewedConversations;
