//! Parking: a consumer takes events from the bus at once, and handles them in a fair order by organization (ADR 26).
//!
//! A queue of the bus is first in, first out: behind a million events of one organization, events of other organizations would
//! wait for hours. So a [`Parking`] lets deliveries through while the handler has room, and parks all others in a table of
//! the consumer's service, which its processes share. Parked events are handled in turns of the organizations. An event that
//! fails is returned to the bus, which has the retries and the dead letters; it is not parked a second time.

mod handler;
#[cfg(feature = "distributed")]
mod postgres;
mod rows;
mod sqlite;
mod table;
#[cfg(test)]
mod tests;
mod turns;
mod worker;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};

use assay_contracts::ids::OrganizationId;
use assay_platform::db::Database;
use assay_platform::runtime::LockExt as _;
use tokio::sync::{Notify, Semaphore};
use uuid::Uuid;

pub use self::worker::ParkedWork;

/// Workers that handle parked events: while one waits for the database, the other computes.
const WORKERS: usize = 2;

/// The parked events of one service. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct Parking {
    database: Database,
    shared: Arc<Shared>,
}

struct Shared {
    /// Most events handled together.
    chunk: usize,
    /// A permit for each event that handlers may work on at a time.
    room: Semaphore,
    /// Whether the table may hold unclaimed events: then no delivery is let through.
    may_hold_unclaimed: AtomicBool,
    /// Wakes a worker: events were parked, or a permit was released.
    changed: Notify,
    /// The organization that had the last turn.
    last_turn: Mutex<OrganizationId>,
}

/// Permit to handle some events. On drop it is released, and a worker wakes.
struct InFlightPermit {
    shared: Arc<Shared>,
    events: usize,
}

impl Parking {
    /// Parked events in `database`, whose migrations include [`crate::MIGRATIONS`]. Up to `chunk` events are handled together;
    /// up to twice that number are in flight in this process.
    pub fn new(database: Database, chunk: usize) -> Self {
        let chunk = chunk.max(1);
        let shared = Shared {
            chunk,
            room: Semaphore::new(WORKERS * chunk),
            may_hold_unclaimed: AtomicBool::new(false),
            changed: Notify::new(),
            last_turn: Mutex::new(Uuid::nil().into()),
        };
        Self { database, shared: Arc::new(shared) }
    }
}

impl Shared {
    /// A permit to handle `events` events, if there is room for them.
    fn try_acquire(self: &Arc<Self>, events: usize) -> Option<InFlightPermit> {
        self.room.try_acquire_many(permits(events)).ok()?.forget();
        Some(InFlightPermit { shared: Arc::clone(self), events })
    }

    /// A permit to handle `events` events, once there is room for them; in the order of the calls.
    async fn acquire(self: &Arc<Self>, events: usize) -> InFlightPermit {
        let events = events.min(self.max_in_flight());
        // The semaphore is never closed.
        if let Ok(taken) = self.room.acquire_many(permits(events)).await {
            taken.forget();
        }
        InFlightPermit { shared: Arc::clone(self), events }
    }

    /// Maximum number of events in flight. A permit for all of them excludes all other work.
    fn max_in_flight(&self) -> usize {
        WORKERS * self.chunk
    }

    fn last_turn(&self) -> MutexGuard<'_, OrganizationId> {
        // Nothing panics while the lock is held.
        self.last_turn.locked()
    }
}

impl InFlightPermit {
    /// Reduces the permit to `events` events, without waking a worker: a worker that found no event would wake itself.
    fn keep(&mut self, events: usize) {
        let unused = self.events.saturating_sub(events);
        self.events -= unused;
        self.shared.room.add_permits(unused);
    }
}

impl Drop for InFlightPermit {
    fn drop(&mut self) {
        if self.events > 0 {
            self.shared.room.add_permits(self.events);
            self.shared.changed.notify_one();
        }
    }
}

fn permits(events: usize) -> u32 {
    u32::try_from(events).unwrap_or(u32::MAX)
}
