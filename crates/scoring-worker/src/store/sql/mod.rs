//! The statements, compiled once for each database: `super` is `postgres.rs` or `sqlite.rs`, which define what differs.

pub mod evaluations;
pub mod removal;
pub(super) mod schema;

pub use assay_messaging::inbox;

use super::{Connection, IdType, insert};
