//! Conversations and labels, read from files.

mod examples;
mod files;
mod labels;
mod reviewed;

pub(crate) use self::examples::{Example, sha256_hex};
pub use self::files::DataError;
pub(crate) use self::files::{conversations, lines, read};
pub use self::labels::{Label, Labels};
pub use self::reviewed::Reviewed;
