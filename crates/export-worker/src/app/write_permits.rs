//! Permits to write a file. A free one goes to the organization that writes the fewest files, then to the job that has waited
//! longest: many exports of one organization do not delay those of the others.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use assay_contracts::ids::OrganizationId;
use assay_platform::runtime::LockExt as _;
use tokio::sync::oneshot::{Sender, channel};

pub(super) struct WritePermits {
    state: Mutex<State>,
}

struct State {
    free: usize,
    /// Permits in use.
    writing: HashMap<OrganizationId, usize>,
    /// In the order of their arrival.
    waiting: VecDeque<Waiter>,
}

struct Waiter {
    organization_id: OrganizationId,
    granted: Sender<WritePermit>,
}

/// The right to write one file, until it is dropped.
pub(super) struct WritePermit {
    organization_id: OrganizationId,
    permits: Arc<WritePermits>,
}

impl WritePermits {
    pub(super) fn new(count: usize) -> Arc<Self> {
        let state = State { free: count, writing: HashMap::new(), waiting: VecDeque::new() };
        Arc::new(Self { state: Mutex::new(state) })
    }

    /// Waits for a permit; `None` cannot happen while `self` exists. The wait may be cancelled at any time.
    pub(super) async fn acquire(self: &Arc<Self>, organization_id: OrganizationId) -> Option<WritePermit> {
        let (granted, permit) = channel();
        self.lock().waiting.push_back(Waiter { organization_id, granted });
        self.grant();
        permit.await.ok()
    }

    /// Gives the free permits to waiting jobs. If a wait was cancelled meanwhile, its permit is dropped and so given back.
    fn grant(self: &Arc<Self>) {
        loop {
            let Some(Waiter { organization_id, granted }) = self.lock().take_next() else { return };
            drop(granted.send(WritePermit { organization_id, permits: self.clone() }));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.locked()
    }
}

impl State {
    /// Takes a free permit for the next job.
    fn take_next(&mut self) -> Option<Waiter> {
        if self.free == 0 {
            return None;
        }
        self.waiting.retain(|waiter| !waiter.granted.is_closed());
        let writing = |waiter: &Waiter| self.writing.get(&waiter.organization_id).copied().unwrap_or(0);
        let (next, _) = self.waiting.iter().enumerate().min_by_key(|(_, waiter)| writing(waiter))?;
        let waiter = self.waiting.remove(next)?;
        self.free -= 1;
        *self.writing.entry(waiter.organization_id).or_default() += 1;
        Some(waiter)
    }

    fn release(&mut self, organization_id: OrganizationId) {
        self.free += 1;
        if let Some(count) = self.writing.get_mut(&organization_id) {
            *count -= 1;
            if *count == 0 {
                self.writing.remove(&organization_id);
            }
        }
    }
}

impl Drop for WritePermit {
    fn drop(&mut self) {
        self.permits.lock().release(self.organization_id);
        self.permits.grant();
    }
}

#[cfg(test)]
mod tests {
    use assay_platform::runtime::new_id;
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn free_permit_goes_to_the_organization_that_writes_least() {
        let permits = WritePermits::new(2);
        let (greedy, other): (OrganizationId, OrganizationId) = (new_id(), new_id());
        let first = permits.acquire(greedy).await.unwrap();
        let second = permits.acquire(greedy).await.unwrap();
        let mut waits: Vec<_> = (0..3).map(|_| Box::pin(permits.acquire(greedy))).collect();
        let mut others = Box::pin(permits.acquire(other));
        for wait in &mut waits {
            assert!(wait.now_or_never().is_none());
        }
        assert!((&mut others).now_or_never().is_none());
        drop(first);
        let of_other = (&mut others).now_or_never().unwrap().unwrap();
        assert!(waits.iter_mut().all(|wait| wait.now_or_never().is_none()));
        drop((second, of_other));
        let granted: Vec<_> = waits.iter_mut().filter_map(|wait| wait.now_or_never()).collect();
        assert_eq!(granted.len(), 2);
    }

    #[tokio::test]
    async fn abandoned_wait_takes_no_permit() {
        let permits = WritePermits::new(1);
        let held = permits.acquire(new_id()).await.unwrap();
        for _ in 0..3 {
            assert!(permits.acquire(new_id()).now_or_never().is_none());
        }
        // Granted, then dropped before it is received.
        let mut unreceived = Box::pin(permits.acquire(new_id()));
        assert!((&mut unreceived).now_or_never().is_none());
        drop(held);
        drop(unreceived);
        assert!(permits.acquire(new_id()).now_or_never().is_some());
    }
}
