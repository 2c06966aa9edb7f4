//! Events that are committed and not yet on the bus. A row is removed when the bus has confirmed the event, and never
//! before: an outage of the bus only makes the table grow.

mod backlog;
mod handover;
mod pace;
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
pub use self::handover::Handover;
use self::handover::Handovers;
pub use self::postgres::enqueue_postgres;
pub use self::relay::relay;
pub use self::sqlite::enqueue_sqlite;
use crate::envelope::OutgoingEvent;

/// How long a claim lasts unless it is renewed. A relay that dies holds its rows for so long.
const LEASE_MILLIS: i64 = 10_000;

/// No attempt and no lease is ever put off further than this, unless a clock has been set back since.
const LATEST_ATTEMPT_MILLIS: i64 = 120_000;

/// Rows in one statement: far below the limits on bound values of both databases.
const ROWS_PER_STATEMENT: usize = 1_000;

/// The outbox of one service. Cloned freely; all clones are one.
#[derive(Clone)]
pub struct Outbox {
    database: Database,
    committed: Arc<Notify>,
    handovers: Arc<Handovers>,
}

/// How an outbox does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxStatus {
    /// Events that wait for the bus.
    pub pending: u64,
    /// When the oldest of them was written.
    pub oldest_pending: Option<Timestamp>,
    /// Why the oldest of those that were refused before was refused. An outage of the bus refuses nothing.
    pub last_error: Option<String>,
    /// Events that were given up.
    pub dead: u64,
}

/// An event that was given up: only possible on the local bus, where a consumer can reject it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadEvent {
    /// Its id.
    pub id: EventId,
    /// Its topic.
    pub topic: String,
    /// The tenant it belongs to.
    pub organization_id: OrganizationId,
    /// When it was written.
    pub created_at: Timestamp,
    /// When it was given up.
    pub dead_at: Timestamp,
    /// Attempts that failed.
    pub attempts: u32,
    /// Why.
    pub last_error: String,
    /// The event as it would be published.
    pub payload: String,
}

/// A row that this process is publishing.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Claimed {
    event: OutgoingEvent,
    created_at: Timestamp,
}

/// What became of claimed rows.
#[derive(Debug, Default)]
struct Settlement {
    /// On the bus: removed.
    published: Vec<EventId>,
    /// Not tried, because the bus is down: free for the next claim.
    released: Vec<EventId>,
    /// Not taken this time.
    postponed: Vec<Postponed>,
    /// Given up.
    dead: Vec<(EventId, String)>,
}

#[derive(Debug)]
struct Postponed {
    id: EventId,
    /// Whether an attempt of a consumer failed.
    counts: bool,
    next_attempt_at: Timestamp,
    reason: String,
}

impl Settlement {
    /// Whether all of it is on the bus.
    fn is_of_published(&self) -> bool {
        self.released.is_empty() && self.postponed.is_empty() && self.dead.is_empty()
    }
}

impl Outbox {
    /// The outbox in `database`, whose migrations include [`crate::MIGRATIONS`].
    pub fn new(database: Database) -> Self {
        Self { database, committed: Arc::new(Notify::new()), handovers: Arc::default() }
    }

    /// Before a transaction that writes events: who is to publish them. Whoever asks says after the commit, by
    /// [`Self::hand_over`], that they are there; otherwise they rest until their claim ends.
    pub fn handover(&self) -> Handover {
        if self.handovers.has_room() {
            Handover::until(now().plus_millis(LEASE_MILLIS))
        } else {
            Handover::NONE
        }
    }

    /// After the commit: has the relay of this process publish the events at once. Nothing else than [`Self::wake`] when
    /// they were not written for it.
    pub fn hand_over(&self, handover: Handover, events: Vec<OutgoingEvent>) {
        match handover.claimed_until() {
            Some(claimed_until) => self.handovers.push(events, now(), claimed_until),
            None => self.wake(),
        }
    }

    /// Tells the relay of this process that a transaction with new events has been committed. Not needed for them to
    /// be published, only to be published at once.
    pub fn wake(&self) {
        self.committed.notify_one();
    }

    /// When the oldest event that waits for the bus was written; for readiness.
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

    /// When the oldest event that waits for the bus was written, and how many wait; they are counted up to `limit`.
    async fn backlog(&self, limit: u64) -> Result<(Option<Timestamp>, u64), DatabaseError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let (oldest, events) = match &self.database {
            Database::Postgres(database) => database.run(move |c| postgres::backlog(c, limit)).await?,
            Database::Sqlite(database) => database.read(move |c| sqlite::backlog(c, limit)).await?,
        };
        Ok((oldest.map(Timestamp::saturating_from_millis), count(events)))
    }

    /// The database that it lies in.
    pub(crate) fn database(&self) -> &Database {
        &self.database
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

    /// The events that were given up, oldest first, `limit` at most.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn dead_events(&self, limit: u32) -> Result<Vec<DeadEvent>, DatabaseError> {
        match &self.database {
            Database::Postgres(database) => database.run(move |c| postgres::dead_events(c, limit)).await,
            Database::Sqlite(database) => database.read(move |c| sqlite::dead_events(c, limit)).await,
        }
    }

    /// Lets a dead event begin anew with its first attempt. Answers whether there was one with this id.
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

    /// Ends all claims: for a process that knows that no relay of this outbox lives, so that nothing has to wait for the
    /// leases of dead ones. Where one lives after all, events are published twice.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn end_claims(&self) -> Result<(), DatabaseError> {
        match &self.database {
            Database::Postgres(database) => database.run(postgres::end_claims).await,
            Database::Sqlite(database) => database.write(sqlite::end_claims).await,
        }
    }

    /// Removes a dead event for good. Answers whether there was one with this id.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn drop_dead(&self, id: EventId) -> Result<bool, DatabaseError> {
        match &self.database {
            Database::Postgres(database) => database.run(move |c| postgres::drop_dead(c, id)).await,
            Database::Sqlite(database) => database.write(move |c| sqlite::drop_dead(c, id)).await,
        }
    }

    /// Claims due rows, those first that have waited longest. No two relays get the same row while its lease lasts.
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

    /// Writes down what became of claimed rows, all of it or nothing.
    async fn settle(&self, settlement: Arc<Settlement>, now: Timestamp) -> Result<(), DatabaseError> {
        match &self.database {
            Database::Postgres(database) => {
                database.run(move |c| postgres::settle(c, &settlement, now)).await
            }
            Database::Sqlite(database) => database.write(move |c| sqlite::settle(c, &settlement, now)).await,
        }
    }

    /// Brings back rows that a clock which ran ahead has put off too far.
    async fn undo_clock_steps(&self, now: Timestamp) -> Result<(), DatabaseError> {
        match &self.database {
            Database::Postgres(database) => database.run(move |c| postgres::undo_clock_steps(c, now)).await,
            Database::Sqlite(database) => database.write(move |c| sqlite::undo_clock_steps(c, now)).await,
        }
    }
}

fn unsigned(attempts: i32) -> u32 {
    u32::try_from(attempts).unwrap_or_default()
}

fn count(rows: i64) -> u64 {
    u64::try_from(rows).unwrap_or_default()
}
