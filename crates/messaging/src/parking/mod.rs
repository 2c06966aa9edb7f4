//! Parking: a consumer takes events from the bus at once, and handles them in a fair order by organization (ADR 26).
//!
//! A queue of the bus is first in, first out: behind a million events of one organization, events of other organizations would
//! wait for hours. So a [`Parking`] lets deliveries through while the handler has room, and parks all others in a table of
//! the consumer's service, which its processes share. Parked events are handled in turns of the organizations. An event that
//! fails is returned to the bus, which has the retries and the dead letters; it is not parked a second time.

mod chunk_size;
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

use std::ops::RangeInclusive;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use assay_contracts::ids::OrganizationId;
use assay_platform::db::Database;
use tokio::sync::{Notify, Semaphore};
use uuid::Uuid;

use self::chunk_size::ChunkSize;
pub use self::worker::ParkedWork;

/// Workers that handle parked events: while one waits for the database, the other computes.
const WORKERS: usize = 2;
/// Permits of a chunk: an event needs its share of them, whatever the size of the chunk is at the time.
const PERMITS_OF_CHUNK: usize = 1 << 12;

/// The parked events of one service. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct Parking {
    database: Database,
    shared: Arc<Shared>,
}

struct Shared {
    /// Most events handled together.
    chunk_size: ChunkSize,
    /// Permits for as many chunks as handlers may work on at a time.
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
    /// Size of a chunk when it was acquired.
    chunk: usize,
    permits: usize,
}

impl Parking {
    /// Parked events in `database`, whose migrations include [`crate::MIGRATIONS`]. So many events are handled together as take a quarter of
    /// a second, within `chunk`; up to twice that number are in flight in this process.
    pub fn new(database: Database, chunk: RangeInclusive<usize>) -> Self {
        let shared = Shared {
            chunk_size: ChunkSize::new(chunk),
            room: Semaphore::new(WORKERS * PERMITS_OF_CHUNK),
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
        let chunk = self.chunk_size.get();
        let permits = permits_of(events, chunk);
        self.room.try_acquire_many(permits_as_u32(permits)).ok()?.forget();
        Some(InFlightPermit { shared: Arc::clone(self), chunk, permits })
    }

    /// A permit to handle `events` events, once there is room for them; in the order of the calls. With `alone` it excludes all
    /// other work.
    async fn acquire(self: &Arc<Self>, events: usize, alone: bool) -> InFlightPermit {
        let chunk = self.chunk_size.get();
        let all = WORKERS * PERMITS_OF_CHUNK;
        let permits = if alone { all } else { permits_of(events, chunk).min(all) };
        // The semaphore is never closed.
        if let Ok(taken) = self.room.acquire_many(permits_as_u32(permits)).await {
            taken.forget();
        }
        InFlightPermit { shared: Arc::clone(self), chunk, permits }
    }
}

impl InFlightPermit {
    /// Reduces the permit to `events` events, without waking a worker: a worker that found no event would wake itself.
    fn keep(&mut self, events: usize) {
        let unused = self.permits.saturating_sub(permits_of(events, self.chunk));
        self.permits -= unused;
        self.shared.room.add_permits(unused);
    }
}

impl Drop for InFlightPermit {
    fn drop(&mut self) {
        if self.permits > 0 {
            self.shared.room.add_permits(self.permits);
            self.shared.changed.notify_one();
        }
    }
}

/// The permits of `events` events where `chunk` of them are a chunk; rounded down, so that two full chunks always have room.
fn permits_of(events: usize, chunk: usize) -> usize {
    events.saturating_mul(PERMITS_OF_CHUNK) / chunk
}

fn permits_as_u32(permits: usize) -> u32 {
    u32::try_from(permits).unwrap_or(u32::MAX)
}
