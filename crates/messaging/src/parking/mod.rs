//! Parking: a consumer takes events from the bus at once, and handles them in a fair order by organization (ADR 26).
//!
//! A queue of the bus is first in, first out: behind a million events of one organization, events of other organizations would
//! wait for hours. So a [`Parking`] lets deliveries through while the handler has room, and parks all others in a table of
//! the consumer's service, which its processes share. Parked events are handled in turns of the organizations. Those of
//! organizations with a small backlog are also handled in a priority lane, at the priority of requests: imports of others may use
//! the processors, but not delay them. An event that fails is returned to the bus, which has the retries and the dead
//! letters; it is not parked a second time.

mod chunk_size;
mod handler;
mod lane;
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
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use assay_platform::db::Database;

use self::lane::Lane;
pub use self::worker::ParkedWork;

/// The parked events of one service. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct Parking {
    database: Database,
    shared: Arc<Shared>,
}

struct Shared {
    /// Deliveries that are let through, and parked events of all organizations in turns.
    turns: Arc<Lane>,
    /// Parked events of organizations with a small backlog.
    priority: Arc<Lane>,
    /// Whether the table may hold unclaimed events: then no delivery is let through.
    may_hold_unclaimed: AtomicBool,
}

impl Parking {
    /// Parked events in `database`, whose migrations include [`crate::MIGRATIONS`]. They are handled in chunks that take a quarter of
    /// a second, of a size within `chunk_sizes`; up to four chunks are in flight in this process, half of them in the priority lane.
    pub fn new(database: Database, chunk_sizes: RangeInclusive<usize>) -> Self {
        let shared = Shared {
            turns: Lane::new(chunk_sizes.clone()),
            priority: Lane::new(chunk_sizes),
            may_hold_unclaimed: AtomicBool::new(false),
        };
        Self { database, shared: Arc::new(shared) }
    }
}
