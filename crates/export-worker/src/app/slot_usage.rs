//! Counts the slots of this worker that each organization occupies. A slot runs one claimed job, which waits for the read
//! model and then writes its file. One organization may occupy half of the slots, and as many as files are
//! written at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use assay_contracts::ids::OrganizationId;
use assay_platform::runtime::LockExt as _;

pub(super) struct SlotUsage {
    /// Maximum for one organization. Half or more: while a slot is free, at most one organization has reached it.
    limit: usize,
    occupied: Arc<Mutex<HashMap<OrganizationId, usize>>>,
}

/// The slot of a job, occupied until this is dropped.
pub(super) struct OccupiedSlot {
    organization_id: OrganizationId,
    occupied: Arc<Mutex<HashMap<OrganizationId, usize>>>,
}

impl SlotUsage {
    /// For `parallel` slots of jobs that write, and `waiting` additional ones.
    pub(super) fn new(parallel: usize, waiting: usize) -> Self {
        Self { limit: (parallel + waiting).div_ceil(2).max(parallel), occupied: Arc::default() }
    }

    /// The organization that occupies as many slots as it may.
    pub(super) fn organization_at_limit(&self) -> Option<OrganizationId> {
        lock(&self.occupied)
            .iter()
            .find(|(_, count)| **count >= self.limit)
            .map(|(organization, _)| *organization)
    }

    pub(super) fn occupy(&self, organization_id: OrganizationId) -> OccupiedSlot {
        *lock(&self.occupied).entry(organization_id).or_default() += 1;
        OccupiedSlot { organization_id, occupied: self.occupied.clone() }
    }
}

impl Drop for OccupiedSlot {
    fn drop(&mut self) {
        let mut occupied = lock(&self.occupied);
        if let Some(count) = occupied.get_mut(&self.organization_id) {
            *count -= 1;
            if *count == 0 {
                occupied.remove(&self.organization_id);
            }
        }
    }
}

fn lock(occupied: &Mutex<HashMap<OrganizationId, usize>>) -> MutexGuard<'_, HashMap<OrganizationId, usize>> {
    occupied.locked()
}

#[cfg(test)]
mod tests {
    use assay_platform::runtime::new_id;

    use super::*;

    #[test]
    fn organization_leaves_half_of_the_slots() {
        // An organization may occupy 9 of 2 + 16 slots.
        let slot_usage = SlotUsage::new(2, 16);
        let (greedy, other) = (new_id(), new_id());
        let mut occupied: Vec<_> = (0..8).map(|_| slot_usage.occupy(greedy)).collect();
        assert_eq!(slot_usage.organization_at_limit(), None);
        occupied.push(slot_usage.occupy(greedy));
        let others: Vec<_> = (0..8).map(|_| slot_usage.occupy(other)).collect();
        assert_eq!(slot_usage.organization_at_limit(), Some(greedy));
        drop((occupied, others));
        assert_eq!((slot_usage.organization_at_limit(), lock(&slot_usage.occupied).len()), (None, 0));
    }

    #[test]
    fn single_organization_may_write_all_files() {
        for (parallel, waiting) in [(40, 16), (2, 0), (1, 0)] {
            let slot_usage = SlotUsage::new(parallel, waiting);
            let organization = new_id();
            let mut occupied: Vec<_> = (1..parallel).map(|_| slot_usage.occupy(organization)).collect();
            assert_eq!(slot_usage.organization_at_limit(), None, "{parallel} and {waiting}");
            occupied.push(slot_usage.occupy(organization));
            assert_eq!(slot_usage.organization_at_limit(), Some(organization), "{parallel} and {waiting}");
        }
    }
}
