//! The transactional outbox: events that are committed and not yet published. A row is deleted only when the bus has
//! confirmed the event: an outage of the bus only makes the table grow.

mod backlog;
mod enqueue;
mod fast_path;
mod gauges;
mod poll_schedule;
#[cfg(feature = "distributed")]
mod postgres;
mod relay;
mod rows;
mod sqlite;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use assay_contracts::ids::{EventId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_platform::db::{Database, DatabaseError, on_database};
use assay_platform::runtime::now;
use tokio::sync::Notify;

pub use self::backlog::{Backlog, BacklogFull, BacklogLimits};
pub use self::enqueue::Connection;
pub use self::fast_path::FastPathClaim;
use self::fast_path::FastPathQueue;
pub use self::relay::relay;
use self::rows::{BatchLimit, ClaimedEvent, IsolatedClaim, LEASE_MILLIS, PublishResults};
pub use self::rows::{DeadEvent, OutboxStatus};
use crate::envelope::OutgoingEvent;

/// The outbox of one service. Cheap to clone; clones share state.
///
/// On PostgreSQL its statements need no transaction, except in `record_results`, which begins its own.
#[derive(Clone)]
pub struct Outbox {
    database: Database,
    committed: Arc<Notify>,
    fast_path: Arc<FastPathQueue>,
    /// Whether returned events were written: some of them may be isolated.
    has_returned: Arc<AtomicBool>,
}

impl Outbox {
    /// The outbox in `database`, whose migrations include [`crate::MIGRATIONS`].
    pub fn new(database: Database) -> Self {
        Self {
            database,
            committed: Arc::new(Notify::new()),
            fast_path: Arc::default(),
            has_returned: Arc::default(),
        }
    }

    /// To be called before a transaction that writes events: decides whether they take the fast path, that is, are written
    /// as claimed by the relay of this process. The caller must call [`Self::dispatch`] after the commit; otherwise the
    /// events stay blocked until the lease expires.
    pub fn claim_fast_path(&self) -> FastPathClaim {
        if self.fast_path.accepts_events() {
            FastPathClaim::until(now().plus_millis(LEASE_MILLIS))
        } else {
            FastPathClaim::NONE
        }
    }

    /// To be called after the commit: passes the events to the relay of this process. With [`FastPathClaim::NONE`] the
    /// same as [`Self::wake`].
    pub fn dispatch(&self, claim: FastPathClaim, events: Vec<OutgoingEvent>) {
        match claim.claimed_until() {
            Some(claimed_until) => self.fast_path.push(events, now(), claimed_until),
            None => self.wake(),
        }
    }

    /// Wakes the relay of this process after a commit of new events. Without it they are published at the next poll.
    pub fn wake(&self) {
        self.committed.notify_one();
    }

    /// [`Self::wake`], after a commit of returned events.
    pub(crate) fn wake_for_returned(&self) {
        self.has_returned.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Whether returned events were written since the last call.
    fn take_has_returned(&self) -> bool {
        self.has_returned.swap(false, Ordering::Relaxed)
    }

    /// Time at which the oldest pending event was written; for readiness.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn oldest_unpublished(&self) -> Result<Option<Timestamp>, DatabaseError> {
        on_database!(self, read, oldest_pending())
    }

    /// Time at which the oldest pending event was written, and the number of pending events, counted up to `limit`.
    async fn backlog(&self, limit: u64) -> Result<(Option<Timestamp>, u64), DatabaseError> {
        on_database!(self, read, backlog(limit))
    }

    /// The organizations with at least `events` pending events, and how many each of them has.
    async fn organizations_with_backlog(
        &self,
        events: u64,
    ) -> Result<Vec<(OrganizationId, u64)>, DatabaseError> {
        on_database!(self, read, organizations_with_backlog(events))
    }

    /// Counts and ages, for operators.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn status(&self) -> Result<OutboxStatus, DatabaseError> {
        on_database!(self, read, status())
    }

    /// The dead events, oldest first, `limit` at most.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn dead_events(&self, limit: u32) -> Result<Vec<DeadEvent>, DatabaseError> {
        on_database!(self, read, dead_events(limit))
    }

    /// Schedules a dead event again, as attempt 1. Returns whether there was one with this id.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn retry_dead(&self, id: EventId) -> Result<bool, DatabaseError> {
        let now = now();
        let found = on_database!(self, run / write, retry_dead(id, now));
        self.wake();
        found
    }

    /// Releases the claims of crashed relays without waiting for their leases, and counts the crash for their events: on the
    /// local bus one of them may have caused it. Only for a process that knows that no relay of this outbox runs; otherwise
    /// events are published twice.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn release_all_claims(&self) -> Result<(), DatabaseError> {
        let now = now();
        on_database!(self, run / write, release_all_claims(now))
    }

    /// Deletes a dead event. Returns whether there was one with this id.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn drop_dead(&self, id: EventId) -> Result<bool, DatabaseError> {
        on_database!(self, run / write, drop_dead(id))
    }

    /// Claims due rows that are not isolated, longest due first. No two relays get the same row while its lease lasts.
    async fn claim(&self, now: Timestamp, limit: BatchLimit) -> Result<Vec<ClaimedEvent>, DatabaseError> {
        on_database!(self, run / write, claim(now, limit))
    }

    /// Claims an isolated row: its event may have ended the process more than once, see [`crate::bus::cut_short`].
    async fn claim_isolated(&self, now: Timestamp) -> Result<IsolatedClaim, DatabaseError> {
        on_database!(self, run / write, claim_isolated(now))
    }

    /// Extends the lease of rows that are still being published.
    async fn renew(&self, ids: Vec<EventId>, now: Timestamp) -> Result<(), DatabaseError> {
        on_database!(self, run / write, renew(&ids, now))
    }

    /// Records the results of claimed rows in one transaction.
    async fn record_results(
        &self,
        results: Arc<PublishResults>,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        on_database!(self, run / write, record_results(&results, now))
    }

    /// Reschedules rows that were scheduled too late while a clock was ahead.
    async fn repair_clock_skew(&self, now: Timestamp) -> Result<(), DatabaseError> {
        on_database!(self, run / write, repair_clock_skew(now))
    }
}
