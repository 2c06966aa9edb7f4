//! The statements for both databases: `postgres.rs` and `sqlite.rs` each include this module, and define what differs between the
//! databases (imported here from `super`).

pub mod agents;
pub mod keys;
pub mod retention;
pub(super) mod schema;
pub mod sessions;

pub use assay_platform::db::idempotency;

use super::{Connection, Id, lock_organization};
