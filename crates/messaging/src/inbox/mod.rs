//! The inbox: handled events of each consumer, recorded in the transaction of its work. Redelivered events are recognised,
//! so that the work takes effect exactly once.

#[cfg(feature = "distributed")]
mod postgres;
mod sqlite;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use assay_contracts::ids::EventId;
use assay_contracts::time::Timestamp;
use assay_platform::db::DatabaseError;

/// Retention of records, in milliseconds: far beyond every retry, and long enough for an operator to handle dead letters.
pub const RETENTION_MILLIS: i64 = 14 * 24 * 60 * 60 * 1_000;
/// Most records that one statement deletes.
pub const PRUNE_BATCH: u32 = 5_000;

/// A connection to either database, so that the statements of a service can be written once for both.
pub trait Connection {
    /// Records in the caller's transaction that `consumer` handles the events `ids`. Returns those that it had not handled
    /// before: only these need work. Waits for a concurrent transaction with one of them.
    ///
    /// # Errors
    /// When the database refuses; the caller's transaction must be rolled back.
    fn record_events(
        &mut self,
        consumer: &str,
        ids: &[EventId],
        now: Timestamp,
    ) -> Result<HashSet<EventId>, DatabaseError>;

    /// Deletes at most `limit` records of events handled before `before`; returns their number. A later redelivery of such an
    /// event is handled again: `before` must lie beyond every retry.
    ///
    /// # Errors
    /// When the database refuses.
    fn prune_events(&mut self, before: Timestamp, limit: u32) -> Result<usize, DatabaseError>;
}
