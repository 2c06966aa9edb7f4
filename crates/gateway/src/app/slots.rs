//! Slots of requests and of downloads, held until the response is sent: a slow reader keeps its own. One organization has at most
//! half of them: its share. Beyond that it is refused at once; waiting would keep the body of the request in memory.

use std::sync::Arc;

use assay_contracts::ids::OrganizationId;
use assay_platform::web::{ShareInUse, Shares};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(crate) struct Slots {
    slots: Arc<Semaphore>,
    shares: Shares,
}

/// A slot. It counts for no organization until it is assigned to one.
pub(crate) struct Slot {
    shares: Shares,
    _share: Option<ShareInUse>,
    _slot: OwnedSemaphorePermit,
}

/// The organization uses its whole share: this number of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShareExhausted(pub(crate) usize);

impl Slots {
    pub(crate) fn new(slots: usize) -> Self {
        Self { slots: Arc::new(Semaphore::new(slots)), shares: Shares::half_of(slots) }
    }

    pub(crate) fn has_free(&self) -> bool {
        self.slots.available_permits() > 0
    }

    /// Whether the organization may occupy one more slot now.
    ///
    /// # Errors
    /// When it uses its whole share.
    pub(crate) fn check_share(&self, owner: OrganizationId) -> Result<(), ShareExhausted> {
        if self.shares.has_room(owner) { Ok(()) } else { Err(ShareExhausted(self.shares.limit())) }
    }

    /// A free slot, without waiting; `None` when there is none.
    pub(crate) fn acquire(&self) -> Option<Slot> {
        let slot = Arc::clone(&self.slots).try_acquire_owned().ok()?;
        Some(Slot { shares: self.shares.clone(), _share: None, _slot: slot })
    }
}

impl Slot {
    /// The same slot, counted for an organization.
    ///
    /// # Errors
    /// When the organization uses its whole share; the slot is free again.
    pub(crate) fn assign_to(self, owner: OrganizationId) -> Result<Self, ShareExhausted> {
        let share = self.shares.take_one(owner).ok_or(ShareExhausted(self.shares.limit()))?;
        Ok(Self { _share: Some(share), ..self })
    }
}

#[cfg(test)]
mod tests {
    use assay_platform::runtime::new_id;

    use super::*;

    #[test]
    fn single_slot_serves_organizations_in_turn() {
        let slots = Slots::new(1);
        for _ in 0..3 {
            assert!(matches!(slots.acquire().map(|slot| slot.assign_to(new_id())), Some(Ok(_))));
        }
    }
}
