//! The statements for both databases: `postgres.rs` and `sqlite.rs` each compile this folder as their module `sql`. Every write
//! runs in one transaction.

pub mod endpoints;
pub mod maintenance;
pub mod messages;
pub(super) mod record;
mod schema;
pub mod sending;

use super::{Connection, Id, find_for_update, lock_creation, lock_due_messages};
