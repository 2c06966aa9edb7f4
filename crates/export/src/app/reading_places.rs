//! Places for readers of days: a summary of all days of a large organization holds hundreds of megabytes while it is made.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assay_contracts::ids::OrganizationId;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::{LockExt as _, spawn_and_wait, timeout};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// Readers of this process at a time.
const READERS: usize = 3;

/// Those of one organization: it leaves a place to the others.
const READERS_PER_ORGANIZATION: usize = 2;

/// A reader has milliseconds of work, and seconds only while a large import goes on.
const DEADLINE: Duration = Duration::from_secs(5);

pub(crate) struct ReadingPlaces {
    all: Arc<Semaphore>,
    /// Places of the organizations that read.
    by_organization: Mutex<HashMap<OrganizationId, Arc<Semaphore>>>,
}

/// Held until the days are dropped.
#[derive(Debug)]
pub(crate) struct ReadingPlace {
    _own: OwnedSemaphorePermit,
    _common: OwnedSemaphorePermit,
}

impl Default for ReadingPlaces {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(READERS)), by_organization: Mutex::default() }
    }
}

impl ReadingPlaces {
    /// Waits for a place.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] when none is free within some seconds.
    pub(crate) async fn take(&self, organization_id: OrganizationId) -> Result<ReadingPlace, DatabaseError> {
        self.take_within(organization_id, DEADLINE).await
    }

    async fn take_within(
        &self,
        organization_id: OrganizationId,
        deadline: Duration,
    ) -> Result<ReadingPlace, DatabaseError> {
        let (own, all) = (self.places_of(organization_id), self.all.clone());
        let waiting = async move {
            // In this order: waiting for a place of its own, an organization holds no common one.
            let own = own.acquire_owned().await?;
            let common = all.acquire_owned().await?;
            Ok::<_, AcquireError>(ReadingPlace { _own: own, _common: common })
        };
        let taken = timeout(deadline, spawn_and_wait(waiting)).await;
        let busy = || DatabaseError::Unavailable("all places for readers of days are taken".to_owned());
        taken.ok_or_else(busy)??.map_err(|_| busy())
    }

    fn places_of(&self, organization_id: OrganizationId) -> Arc<Semaphore> {
        // No code path panics while it holds the lock.
        let mut organizations = self.by_organization.locked();
        organizations.retain(|_, places| {
            Arc::strong_count(places) > 1 || places.available_permits() < READERS_PER_ORGANIZATION
        });
        let new = || Arc::new(Semaphore::new(READERS_PER_ORGANIZATION));
        organizations.entry(organization_id).or_insert_with(new).clone()
    }
}

#[cfg(test)]
mod tests {
    use assay_platform::runtime::new_id;

    use super::*;

    const SOON: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn organization_leaves_a_place_to_others() {
        let places = ReadingPlaces::default();
        let (one, other) = (new_id(), new_id());
        let first = places.take_within(one, SOON).await.unwrap();
        let _second = places.take_within(one, SOON).await.unwrap();
        let refused = places.take_within(one, SOON).await.unwrap_err();
        assert!(refused.is_transient(), "{refused}");
        let _third = places.take_within(other, SOON).await.unwrap();
        assert!(places.take_within(new_id(), SOON).await.is_err(), "all are taken");
        drop(first);
        places.take_within(one, SOON).await.unwrap();
    }

    #[tokio::test]
    async fn organizations_that_do_not_read_are_removed() {
        let places = ReadingPlaces::default();
        for _ in 0..10 {
            drop(places.take_within(new_id(), SOON).await.unwrap());
        }
        assert_eq!(places.by_organization.lock().unwrap().len(), 1);
    }
}
