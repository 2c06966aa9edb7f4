//! What the statements of parked events take and return.

use assay_contracts::ids::{EventId, OrganizationId};

use crate::envelope::OutgoingEvent;
pub(super) use crate::lease::LEASE_MILLIS;

/// A lease that lasts longer from now on was written by a clock that was set back since: it counts as expired.
pub(super) const MAX_LEASE_MILLIS: i64 = 120_000;

/// The primary key.
pub(super) type Key = (OrganizationId, EventId);

/// A parked event that this process has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParkedEvent {
    pub(super) event: OutgoingEvent,
    /// Number of earlier claims, each of which ended with its process.
    pub(super) earlier_claims: u32,
}

/// Claimed events in their order.
#[derive(Debug, Default)]
pub(super) struct Claim {
    pub(super) events: Vec<ParkedEvent>,
    /// The organization that had the last turn.
    pub(super) last_turn: Option<OrganizationId>,
}

/// Organizations with a small backlog.
#[derive(Debug, Default)]
pub(super) struct SmallBacklogs {
    pub(super) organizations: Vec<OrganizationId>,
    /// The organization that was looked at last; `None`: no event is parked.
    pub(super) last_listed: Option<OrganizationId>,
}

/// The results of claimed events.
#[derive(Debug, Default)]
pub(super) struct Settled {
    pub(super) done: Vec<Key>,
    /// Not handled: claimable again at once, and the claim does not count.
    pub(super) released: Vec<Key>,
    /// To be published on the bus again, for its retries and dead letters.
    pub(super) returned: Vec<OutgoingEvent>,
}

impl ParkedEvent {
    pub(super) fn key(&self) -> Key {
        (self.event.organization_id, self.event.id)
    }
}
