//! Writing events, in the transaction of the caller.

use assay_platform::db::DatabaseError;

use super::fast_path::FastPathClaim;
use crate::envelope::OutgoingEvent;

/// A connection to either database, so that the statements of a service can be written once for both.
pub trait Connection {
    /// Writes events in the caller's transaction. After the commit the caller calls [`super::Outbox::dispatch`].
    ///
    /// # Errors
    /// When the database refuses; the caller's transaction must be rolled back.
    fn enqueue_events(&mut self, events: &[OutgoingEvent], claim: FastPathClaim)
    -> Result<(), DatabaseError>;

    /// Writes events that return to the bus, with their `times_cut_short`. Skips an event that is still in the outbox, pending or
    /// dead, from an earlier return. After the commit the caller calls `Outbox::wake_for_returned`.
    ///
    /// # Errors
    /// When the database refuses; the caller's transaction must be rolled back.
    fn enqueue_returned_events(&mut self, events: &[OutgoingEvent]) -> Result<(), DatabaseError>;
}
