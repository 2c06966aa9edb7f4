//! Permits to read the columns of days: a summary of all days of a large organization needs hundreds of megabytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assay_contracts::ids::OrganizationId;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::{LockExt as _, spawn_and_wait, timeout};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// Maximum number of concurrent readers in this process.
const READERS: usize = 3;

/// Maximum number for one organization: it leaves a permit to the others.
const READERS_PER_ORGANIZATION: usize = 2;

/// Deadline for a permit. A reader holds one for milliseconds, and for seconds only during a large import.
const DEADLINE: Duration = Duration::from_secs(5);

pub(crate) struct ReadPermits {
    all: Arc<Semaphore>,
    /// Permits of the organizations that read.
    by_organization: Mutex<HashMap<OrganizationId, Arc<Semaphore>>>,
}

/// The right to hold columns of days in memory. It is dropped together with them, not earlier.
#[derive(Debug)]
pub(crate) struct ReadPermit {
    _own: OwnedSemaphorePermit,
    _common: OwnedSemaphorePermit,
}

impl Default for ReadPermits {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(READERS)), by_organization: Mutex::default() }
    }
}

impl ReadPermits {
    /// Waits for a permit.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] when none is free within some seconds.
    pub(crate) async fn acquire(&self, organization_id: OrganizationId) -> Result<ReadPermit, DatabaseError> {
        self.acquire_within(organization_id, DEADLINE).await
    }

    async fn acquire_within(
        &self,
        organization_id: OrganizationId,
        deadline: Duration,
    ) -> Result<ReadPermit, DatabaseError> {
        let (own, all) = (self.permits_of(organization_id), self.all.clone());
        let waiting = async move {
            // In this order: a request that waits for a permit of its organization holds no common one.
            let own = own.acquire_owned().await?;
            let common = all.acquire_owned().await?;
            Ok::<_, AcquireError>(ReadPermit { _own: own, _common: common })
        };
        // A task, because a request that is not polled must not keep the others from a permit that it was given. It ends with the request.
        let taken = timeout(deadline, spawn_and_wait(waiting)).await;
        let busy = || DatabaseError::Unavailable("all permits to read days are in use".to_owned());
        taken.ok_or_else(busy)??.map_err(|_| busy())
    }

    fn permits_of(&self, organization_id: OrganizationId) -> Arc<Semaphore> {
        let mut organizations = self.by_organization.locked();
        // Each permit and each waiting request holds a reference: the other organizations do not read at the moment.
        organizations.retain(|_, permits| Arc::strong_count(permits) > 1);
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
    async fn organization_leaves_a_permit_to_others() {
        let permits = ReadPermits::default();
        let (one, other) = (new_id(), new_id());
        let first = permits.acquire_within(one, SOON).await.unwrap();
        let _second = permits.acquire_within(one, SOON).await.unwrap();
        let refused = permits.acquire_within(one, SOON).await.unwrap_err();
        assert!(refused.is_transient(), "{refused}");
        let _third = permits.acquire_within(other, SOON).await.unwrap();
        assert!(permits.acquire_within(new_id(), SOON).await.is_err(), "all are in use");
        drop(first);
        permits.acquire_within(one, SOON).await.unwrap();
    }

    #[tokio::test]
    async fn organizations_that_do_not_read_are_removed() {
        let permits = ReadPermits::default();
        for _ in 0..10 {
            drop(permits.acquire_within(new_id(), SOON).await.unwrap());
        }
        // The next request removes the last one.
        assert_eq!(permits.by_organization.lock().unwrap().len(), 1);
    }
}
