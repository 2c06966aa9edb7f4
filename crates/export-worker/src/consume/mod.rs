//! Event handlers.

mod export_requested;

pub use self::export_requested::QUEUE;
pub(crate) use self::export_requested::{ExportRequestedHandler, subscription};
