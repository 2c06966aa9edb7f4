//! Which events a consumer has handled. Written in the transaction of its work, so that the work is done exactly
//! once however often an event is delivered.

mod postgres;
mod sqlite;
#[cfg(test)]
mod tests;

pub use self::postgres::{forget_postgres, record_postgres};
pub use self::sqlite::{forget_sqlite, record_sqlite};

/// Ids in one statement: far below the limits on bound values of both databases.
const IDS_PER_STATEMENT: usize = 1_000;
