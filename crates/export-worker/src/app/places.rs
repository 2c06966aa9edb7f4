//! The places for claimed jobs in this worker: as many as there are slots. One organization may hold all that write files and
//! half of those that wait, so that the others always find one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use assay_contracts::ids::OrganizationId;
use assay_platform::runtime::LockExt as _;

pub(super) struct Places {
    /// More than half of all places: at most one organization can reach it.
    limit: usize,
    held: Arc<Mutex<HashMap<OrganizationId, usize>>>,
}

/// A place of a job, until it is dropped.
pub(super) struct Place {
    organization_id: OrganizationId,
    held: Arc<Mutex<HashMap<OrganizationId, usize>>>,
}

impl Places {
    /// `waiting` places beside those of the `parallel` jobs that write.
    pub(super) fn new(parallel: usize, waiting: usize) -> Self {
        Self { limit: parallel + waiting / 2, held: Arc::default() }
    }

    /// The organization that has all the places that it may have.
    pub(super) fn full(&self) -> Option<OrganizationId> {
        lock(&self.held)
            .iter()
            .find(|(_, count)| **count >= self.limit)
            .map(|(organization, _)| *organization)
    }

    pub(super) fn take(&self, organization_id: OrganizationId) -> Place {
        *lock(&self.held).entry(organization_id).or_default() += 1;
        Place { organization_id, held: self.held.clone() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = lock(&self.held);
        if let Some(count) = held.get_mut(&self.organization_id) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.organization_id);
            }
        }
    }
}

fn lock(held: &Mutex<HashMap<OrganizationId, usize>>) -> MutexGuard<'_, HashMap<OrganizationId, usize>> {
    held.locked()
}

#[cfg(test)]
mod tests {
    use assay_platform::runtime::new_id;

    use super::*;

    #[test]
    fn organization_leaves_half_of_the_waiting_places() {
        let places = Places::new(2, 16);
        let (greedy, other) = (new_id(), new_id());
        let mut held: Vec<_> = (0..9).map(|_| places.take(greedy)).collect();
        assert_eq!(places.full(), None);
        held.push(places.take(greedy));
        let others: Vec<_> = (0..8).map(|_| places.take(other)).collect();
        assert_eq!(places.full(), Some(greedy));
        drop((held, others));
        assert_eq!((places.full(), lock(&places.held).len()), (None, 0));
    }
}
