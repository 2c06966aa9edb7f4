//! What the statements of the outbox take and return.

use assay_contracts::ids::{EventId, OrganizationId};
use assay_contracts::time::Timestamp;

use crate::envelope::OutgoingEvent;
pub(super) use crate::lease::LEASE_MILLIS;

/// Longest time ahead for which an attempt or lease is scheduled. A row beyond it was written before the clock was set back:
/// `repair_clock_skew` makes it due.
pub(super) const MAX_SCHEDULE_MILLIS: i64 = 120_000;

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

/// A dead letter that is still in the outbox: a consumer on the local bus rejected it, or the broker refused this event.
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

/// Maximum number of events and of payload bytes of a batch. A single event may exceed the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchLimit {
    pub(super) events: u32,
    pub(super) bytes: usize,
}

impl BatchLimit {
    /// For one claim: up to `relay::MAX_CONCURRENT_BATCHES` of them are in memory at once.
    pub(super) const CLAIM: Self = Self { events: 256, bytes: 4 * 1024 * 1024 };

    /// Without a limit.
    pub(super) const UNLIMITED: Self = Self { events: u32::MAX, bytes: usize::MAX };

    /// Whether an event of `event_bytes` can be added to `event_count` events of `total_bytes` in all.
    pub(super) fn has_room(self, event_count: usize, total_bytes: usize, event_bytes: usize) -> bool {
        event_count == 0
            || (event_count < self.events as usize && total_bytes.saturating_add(event_bytes) <= self.bytes)
    }
}

/// An event whose row this process has claimed, to publish it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClaimedEvent {
    pub(super) event: OutgoingEvent,
    pub(super) created_at: Timestamp,
}

/// Result of claiming an isolated row: its `cut_short` is 2 or more, so it was claimed when the process ended at least twice. It
/// is published alone ([`crate::bus::cut_short`]).
#[derive(Debug)]
pub(super) enum IsolatedClaim {
    /// The claimed row.
    Due(ClaimedEvent),
    /// There are isolated rows, but none can be claimed now. The first one is due at this time.
    Waiting(Timestamp),
    /// No row is isolated.
    NoneIsolated,
}

/// Results of publishing claimed rows.
#[derive(Debug, Default)]
pub(super) struct PublishResults {
    /// Confirmed: to be deleted.
    pub(super) published: Vec<EventId>,
    /// Not published because the bus is down or the relay stops: claimable at once.
    pub(super) released: Vec<EventId>,
    /// Failed: to be attempted again later.
    pub(super) postponed: Vec<Postponed>,
    /// Without further attempts, with the reason.
    pub(super) dead: Vec<(EventId, String)>,
}

#[derive(Debug)]
pub(super) struct Postponed {
    pub(super) id: EventId,
    /// Whether it counts as an attempt: not when a required queue was missing.
    pub(super) counts_attempt: bool,
    pub(super) next_attempt_at: Timestamp,
    pub(super) reason: String,
}

impl PublishResults {
    pub(super) fn all_published(&self) -> bool {
        self.released.is_empty() && self.postponed.is_empty() && self.dead.is_empty()
    }
}
