//! Which events a consumer has handled. Written in the transaction of its work, so that the work is done exactly
//! once however often an event is delivered.

mod postgres;
mod sqlite;
#[cfg(test)]
mod tests;

pub use self::postgres::{forget_postgres, record_postgres};
pub use self::sqlite::{forget_sqlite, record_sqlite};

/// Handled events are remembered for so long, in milliseconds: far beyond every retry, and long enough for somebody to
/// look after dead letters.
pub const RETENTION_MILLIS: i64 = 14 * 24 * 60 * 60 * 1_000;
/// At most so many records are forgotten by one statement.
pub const PRUNE_BATCH: u32 = 5_000;

/// Ids in one statement: far below the limits on bound values of both databases.
const IDS_PER_STATEMENT: usize = 1_000;
