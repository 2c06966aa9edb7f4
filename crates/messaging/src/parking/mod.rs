//! Parking: a consumer takes events from the bus at once, and handles them in a fair order by organization (ADR 26).
//!
//! A queue of the bus is first in, first out: behind the million events of one organization those of all others would wait for
//! hours. So a [`Parking`] lets through as many deliveries as can be handled together, and parks all others in a table of the
//! consumer's service, which its processes share. From there the organizations take turns. An event that fails is returned to
//! the bus, which has the retries and the dead letters; it is not parked a second time.

mod handler;
mod postgres;
mod rows;
mod sqlite;
mod table;
#[cfg(test)]
mod tests;
mod turns;
mod worker;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use assay_contracts::ids::OrganizationId;
use assay_platform::db::Database;
use tokio::sync::Notify;
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
    /// Events that handlers are working on.
    in_flight: AtomicUsize,
    /// Whether the table may hold unclaimed events: then no delivery is let through.
    may_hold_unclaimed: AtomicBool,
    /// Wakes a worker: events were parked, or others are done.
    changed: Notify,
    /// The organization that had the last turn.
    last: Mutex<OrganizationId>,
}

/// Permit to handle some events; released on drop.
struct InFlightPermit {
    shared: Arc<Shared>,
    events: usize,
}

impl Parking {
    /// Parked events in `database`, whose migrations include [`crate::MIGRATIONS`]. Up to `chunk` events are handled together,
    /// and twice as many at a time in this process.
    pub fn new(database: Database, chunk: usize) -> Self {
        let shared = Shared {
            chunk: chunk.max(1),
            in_flight: AtomicUsize::new(0),
            may_hold_unclaimed: AtomicBool::new(false),
            changed: Notify::new(),
            last: Mutex::new(Uuid::nil().into()),
        };
        Self { database, shared: Arc::new(shared) }
    }
}

impl Shared {
    /// A permit to handle so many events, if there is room for them.
    fn try_start(self: &Arc<Self>, events: usize) -> Option<InFlightPermit> {
        let limit = WORKERS * self.chunk;
        let take = |in_flight: usize| (in_flight + events <= limit).then_some(in_flight + events);
        let taken = self.in_flight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.ok().map(|_| InFlightPermit { shared: Arc::clone(self), events })
    }

    fn last(&self) -> MutexGuard<'_, OrganizationId> {
        // Nothing panics while the lock is held.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InFlightPermit {
    fn drop(&mut self) {
        self.shared.in_flight.fetch_sub(self.events, Ordering::Relaxed);
        self.shared.changed.notify_one();
    }
}
