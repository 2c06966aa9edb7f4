//! A lane of parked events: whose turn it is in it, and room for what may be in flight.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assay_contracts::ids::OrganizationId;
use assay_platform::runtime::LockExt as _;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use uuid::Uuid;

use super::chunk_size::ChunkSize;

/// Workers of a lane: while one waits for the database, the other computes.
pub(super) const WORKERS: usize = 2;
/// A full chunk takes this many permits, and an event its share of them: the number of permits stays the same when the chunk size
/// changes.
const PERMITS_OF_CHUNK: usize = 4_096;

pub(super) struct Lane {
    /// Most events handled together.
    pub(super) chunk_size: ChunkSize,
    /// For as many chunks as handlers may work on at a time.
    permits: Semaphore,
    /// Wakes a worker: events were parked, or a permit was released.
    pub(super) wakeup: Notify,
    /// The organization that had the last turn.
    pub(super) last_turn: Mutex<OrganizationId>,
    /// Organizations whose events the lane does not handle, and until when.
    excluded: Mutex<HashMap<OrganizationId, Instant>>,
}

/// Permit to handle some events. On drop it is released, and a worker wakes.
pub(super) struct InFlightPermit {
    lane: Arc<Lane>,
    /// The chunk size when it was acquired.
    chunk_size: usize,
    permits: usize,
}

impl Lane {
    pub(super) fn new(chunk_sizes: RangeInclusive<usize>) -> Arc<Self> {
        Arc::new(Self {
            chunk_size: ChunkSize::new(chunk_sizes),
            permits: Semaphore::new(WORKERS * PERMITS_OF_CHUNK),
            wakeup: Notify::new(),
            last_turn: Mutex::new(Uuid::nil().into()),
            excluded: Mutex::default(),
        })
    }

    /// Leaves the events of these organizations to other lanes for a time.
    pub(super) fn exclude(&self, organizations: Vec<OrganizationId>, duration: Duration) {
        let (mut excluded, now) = (self.excluded.locked(), Instant::now());
        excluded.retain(|_, until| *until > now);
        excluded.extend(organizations.into_iter().map(|organization| (organization, now + duration)));
    }

    pub(super) fn is_excluded(&self, organization: OrganizationId) -> bool {
        self.excluded.locked().get(&organization).is_some_and(|until| *until > Instant::now())
    }

    /// A permit to handle `events` events, if there is room for them.
    pub(super) fn try_acquire(self: &Arc<Self>, events: usize) -> Option<InFlightPermit> {
        let chunk_size = self.chunk_size.get();
        let permits = permits_of(events, chunk_size);
        self.permits.try_acquire_many(permits_as_u32(permits)).ok()?.forget();
        Some(InFlightPermit { lane: Arc::clone(self), chunk_size, permits })
    }

    /// A permit to handle `events` events, once there is room for them; in the order of the calls.
    pub(super) async fn acquire(self: &Arc<Self>, events: usize) -> InFlightPermit {
        self.acquire_permits(permits_of(events, self.chunk_size.get()).min(WORKERS * PERMITS_OF_CHUNK)).await
    }

    /// A permit that excludes all other work of the lane, once none is in flight.
    pub(super) async fn acquire_all(self: &Arc<Self>) -> InFlightPermit {
        self.acquire_permits(WORKERS * PERMITS_OF_CHUNK).await
    }

    async fn acquire_permits(self: &Arc<Self>, permits: usize) -> InFlightPermit {
        let chunk_size = self.chunk_size.get();
        // The semaphore is never closed.
        if let Ok(taken) = self.permits.acquire_many(permits_as_u32(permits)).await {
            taken.forget();
        }
        InFlightPermit { lane: Arc::clone(self), chunk_size, permits }
    }
}

impl InFlightPermit {
    /// Reduces the permit to `events` events, without waking a worker: a worker that found no event would wake itself.
    pub(super) fn reduce_to(&mut self, events: usize) {
        let unused = self.permits.saturating_sub(permits_of(events, self.chunk_size));
        self.permits -= unused;
        self.lane.permits.add_permits(unused);
    }
}

impl Drop for InFlightPermit {
    fn drop(&mut self) {
        if self.permits > 0 {
            self.lane.permits.add_permits(self.permits);
            self.lane.wakeup.notify_one();
        }
    }
}

/// Rounded down, so that two full chunks always have room.
fn permits_of(events: usize, chunk_size: usize) -> usize {
    events.saturating_mul(PERMITS_OF_CHUNK) / chunk_size
}

fn permits_as_u32(permits: usize) -> u32 {
    u32::try_from(permits).unwrap_or(u32::MAX)
}
