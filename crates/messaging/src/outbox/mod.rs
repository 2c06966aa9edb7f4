//! The transactional outbox: events that are committed and not yet published. A row is deleted only when the bus has
//! confirmed the event: an outage of the bus only makes the table grow.

mod backlog;
mod direct_dispatch;
mod gauges;
mod poll_schedule;
mod postgres;
mod relay;
mod sqlite;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use assay_contracts::ids::{EventId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_platform::db::{Database, DatabaseError};
use assay_platform::runtime::now;
use tokio::sync::Notify;

pub use self::backlog::{Backlog, BacklogFull, BacklogLimits};
pub use self::direct_dispatch::DirectDispatch;
use self::direct_dispatch::DispatchQueue;
pub use self::relay::relay;
use crate::envelope::OutgoingEvent;

/// Lease of a claim, unless it is renewed. The rows of a crashed relay are blocked until it expires.
const LEASE_MILLIS: i64 = 10_000;

/// No attempt or lease is scheduled later than this, unless a clock was set back since.
const MAX_SCHEDULE_MILLIS: i64 = 120_000;

/// Rows in one statement: far below the limits on bound values of both databases.
const ROWS_PER_STATEMENT: usize = 1_000;

/// A connection to either database, so that the statements of a service can be written once for both.
pub trait Connection {
    #[doc(hidden)]
    fn enqueue_events(
        &mut self,
        events: &[OutgoingEvent],
        dispatch: DirectDispatch,
    ) -> Result<(), DatabaseError>;
}

/// Writes events in the caller's transaction. After the commit the caller calls [`Outbox::dispatch`].
///
/// # Errors
/// When the database refuses; the caller's transaction must be rolled back.
pub fn enqueue(
    connection: &mut impl Connection,
    events: &[OutgoingEvent],
    dispatch: DirectDispatch,
) -> Result<(), DatabaseError> {
    connection.enqueue_events(events, dispatch)
}

/// The outbox of one service. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct Outbox {
    database: Database,
    committed: Arc<Notify>,
    fast_path: Arc<DispatchQueue>,
}

/// Counts and ages of an outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxStatus {
    /// Events that wait to be published.
    pub pending: u64,
    /// Time at which the oldest pending event was written.
    pub oldest_pending: Option<Timestamp>,
    /// Last error of the oldest pending event that has failed before. Outages of the bus are not recorded.
    pub last_error: Option<String>,
    /// Events without further attempts.
    pub dead: u64,
}

/// An event without further attempts. Only on the local bus, where a consumer can reject it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadEvent {
    /// Id of the event.
    pub id: EventId,
    /// Name of the topic.
    pub topic: String,
    /// The organization that owns the event's data.
    pub organization_id: OrganizationId,
    /// Time at which the event was written.
    pub created_at: Timestamp,
    /// Time of the last failure.
    pub dead_at: Timestamp,
    /// Number of failed attempts.
    pub attempts: u32,
    /// Reason of the last failure.
    pub last_error: String,
    /// The encoded envelope.
    pub payload: String,
}

/// A row that this process is publishing.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Claimed {
    event: OutgoingEvent,
    created_at: Timestamp,
}

/// Results of publishing claimed rows.
#[derive(Debug, Default)]
struct PublishResults {
    /// Confirmed: to be deleted.
    published: Vec<EventId>,
    /// Not attempted because the bus is down: claimable at once.
    released: Vec<EventId>,
    /// Failed: to be attempted again later.
    postponed: Vec<Postponed>,
    /// Without further attempts, with the reason.
    dead: Vec<(EventId, String)>,
}

#[derive(Debug)]
struct Postponed {
    id: EventId,
    /// Whether it was an attempt of a consumer.
    counts_attempt: bool,
    next_attempt_at: Timestamp,
    reason: String,
}

impl PublishResults {
    fn all_published(&self) -> bool {
        self.released.is_empty() && self.postponed.is_empty() && self.dead.is_empty()
    }
}

impl Outbox {
    /// The outbox in `database`, whose migrations include [`crate::MIGRATIONS`].
    pub fn new(database: Database) -> Self {
        Self { database, committed: Arc::new(Notify::new()), fast_path: Arc::default() }
    }

    /// To be called before a transaction that writes events: decides whether they take the fast path, claimed by the relay
    /// of this process. The caller must call [`Self::dispatch`] after the commit; otherwise the events stay blocked until
    /// the lease expires.
    pub fn direct_dispatch(&self) -> DirectDispatch {
        if self.fast_path.has_room() {
            DirectDispatch::until(now().plus_millis(LEASE_MILLIS))
        } else {
            DirectDispatch::NONE
        }
    }

    /// To be called after the commit: passes the events to the relay of this process. With [`DirectDispatch::NONE`] the
    /// same as [`Self::wake`].
    pub fn dispatch(&self, dispatch: DirectDispatch, events: Vec<OutgoingEvent>) {
        match dispatch.claimed_until() {
            Some(claimed_until) => self.fast_path.push(events, now(), claimed_until),
            None => self.wake(),
        }
    }

    /// Wakes the relay of this process after a commit of new events. Without it they are published at the next poll.
    pub fn wake(&self) {
        self.committed.notify_one();
    }

    /// Time at which the oldest pending event was written; for readiness.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn oldest_unpublished(&self) -> Result<Option<Timestamp>, DatabaseError> {
        let oldest = match &self.database {
            Database::Postgres(database) => database.run(postgres::oldest_pending).await,
            Database::Sqlite(database) => database.read(sqlite::oldest_pending).await,
        };
        Ok(oldest?.map(Timestamp::saturating_from_millis))
    }

    /// Time at which the oldest pending event was written, and the number of pending events, counted up to `limit`.
    async fn backlog(&self, limit: u64) -> Result<(Option<Timestamp>, u64), DatabaseError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let (oldest, events) = match &self.database {
            Database::Postgres(database) => database.run(move |c| postgres::backlog(c, limit)).await?,
            Database::Sqlite(database) => database.read(move |c| sqlite::backlog(c, limit)).await?,
        };
        Ok((oldest.map(Timestamp::saturating_from_millis), count(events)))
    }

    /// Counts and ages, for operators.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn status(&self) -> Result<OutboxStatus, DatabaseError> {
        match &self.database {
            Database::Postgres(database) => database.run(postgres::status).await,
            Database::Sqlite(database) => database.read(sqlite::status).await,
        }
    }

    /// The dead events, oldest first, `limit` at most.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn dead_events(&self, limit: u32) -> Result<Vec<DeadEvent>, DatabaseError> {
        match &self.database {
            Database::Postgres(database) => database.run(move |c| postgres::dead_events(c, limit)).await,
            Database::Sqlite(database) => database.read(move |c| sqlite::dead_events(c, limit)).await,
        }
    }

    /// Schedules a dead event again, as attempt 1. Returns whether there was one with this id.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn retry_dead(&self, id: EventId) -> Result<bool, DatabaseError> {
        let now = now();
        let found = match &self.database {
            Database::Postgres(database) => database.run(move |c| postgres::retry_dead(c, id, now)).await,
            Database::Sqlite(database) => database.write(move |c| sqlite::retry_dead(c, id, now)).await,
        };
        self.wake();
        found
    }

    /// Releases the claims of crashed relays without waiting for their leases. Only for a process that knows that no relay
    /// of this outbox runs; otherwise events are published twice.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn release_all_claims(&self) -> Result<(), DatabaseError> {
        match &self.database {
            Database::Postgres(database) => database.run(postgres::release_all_claims).await,
            Database::Sqlite(database) => database.write(sqlite::release_all_claims).await,
        }
    }

    /// Deletes a dead event. Returns whether there was one with this id.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn drop_dead(&self, id: EventId) -> Result<bool, DatabaseError> {
        match &self.database {
            Database::Postgres(database) => database.run(move |c| postgres::drop_dead(c, id)).await,
            Database::Sqlite(database) => database.write(move |c| sqlite::drop_dead(c, id)).await,
        }
    }

    /// Claims due rows, longest due first. No two relays get the same row while its lease lasts.
    async fn claim(&self, now: Timestamp, limit: u32) -> Result<Vec<Claimed>, DatabaseError> {
        match &self.database {
            Database::Postgres(database) => database.run(move |c| postgres::claim(c, now, limit)).await,
            Database::Sqlite(database) => database.write(move |c| sqlite::claim(c, now, limit)).await,
        }
    }

    /// Extends the lease of rows that are still being published.
    async fn renew(&self, ids: Vec<EventId>, now: Timestamp) -> Result<(), DatabaseError> {
        match &self.database {
            Database::Postgres(database) => database.run(move |c| postgres::renew(c, &ids, now)).await,
            Database::Sqlite(database) => database.write(move |c| sqlite::renew(c, &ids, now)).await,
        }
    }

    /// Records the results of claimed rows in one transaction.
    async fn record_results(
        &self,
        results: Arc<PublishResults>,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        match &self.database {
            Database::Postgres(database) => {
                database.run(move |c| postgres::record_results(c, &results, now)).await
            }
            Database::Sqlite(database) => {
                database.write(move |c| sqlite::record_results(c, &results, now)).await
            }
        }
    }

    /// Reschedules rows that a clock running ahead has scheduled too late.
    async fn repair_clock_skew(&self, now: Timestamp) -> Result<(), DatabaseError> {
        match &self.database {
            Database::Postgres(database) => database.run(move |c| postgres::repair_clock_skew(c, now)).await,
            Database::Sqlite(database) => database.write(move |c| sqlite::repair_clock_skew(c, now)).await,
        }
    }
}

fn unsigned(attempts: i32) -> u32 {
    u32::try_from(attempts).unwrap_or_default()
}

fn count(rows: i64) -> u64 {
    u64::try_from(rows).unwrap_or_default()
}
