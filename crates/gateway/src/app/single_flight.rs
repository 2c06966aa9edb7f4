//! Request coalescing: concurrent calls for the same key share one result.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The calls in flight, at most one per key. Results are not cached.
pub(crate) struct SingleFlight<K, V> {
    in_flight: Mutex<HashMap<K, watch::Receiver<Option<V>>>>,
}

/// The caller that makes the call. Dropping it ends the flight; followers without a result then retry as leaders.
struct Leader<'f, K: Eq + Hash, V> {
    flights: &'f SingleFlight<K, V>,
    key: &'f K,
    tx: watch::Sender<Option<V>>,
}

enum Role<'f, K: Eq + Hash, V> {
    Leader(Leader<'f, K, V>),
    Follower(watch::Receiver<Option<V>>),
}

impl<K: Clone + Eq + Hash, V: Clone> SingleFlight<K, V> {
    pub(crate) fn new() -> Self {
        Self { in_flight: Mutex::default() }
    }

    /// Joins the call in flight for `key`, or else makes `call` and shares its result with concurrent callers.
    pub(crate) async fn run(&self, key: &K, call: impl Future<Output = V>) -> V {
        loop {
            match self.join(key) {
                Role::Leader(leader) => {
                    let result = call.await;
                    leader.tx.send_replace(Some(result.clone()));
                    return result;
                }
                Role::Follower(mut rx) => {
                    // An error means that the leader was dropped, for instance because its client disconnected.
                    if let Ok(result) = rx.wait_for(Option::is_some).await
                        && let Some(result) = result.as_ref()
                    {
                        return result.clone();
                    }
                }
            }
        }
    }

    fn join<'f>(&'f self, key: &'f K) -> Role<'f, K, V> {
        match self.lock().entry(key.clone()) {
            Entry::Occupied(flight) => Role::Follower(flight.get().clone()),
            Entry::Vacant(entry) => {
                let (tx, rx) = watch::channel(None);
                entry.insert(rx);
                Role::Leader(Leader { flights: self, key, tx })
            }
        }
    }
}

impl<K: Eq + Hash, V> SingleFlight<K, V> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, watch::Receiver<Option<V>>>> {
        // Nothing panics while the lock is held.
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash, V> Drop for Leader<'_, K, V> {
    fn drop(&mut self) {
        self.flights.lock().remove(self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn concurrent_calls_for_a_key_share_one_result() {
        let (flights, calls) = (SingleFlight::new(), AtomicUsize::new(0));
        let (tx, rx) = oneshot::channel::<()>();
        let call = |number: usize, finish: Option<oneshot::Receiver<()>>| {
            let calls = &calls;
            async move {
                calls.fetch_add(1, Ordering::Relaxed);
                if let Some(finish) = finish {
                    finish.await.unwrap();
                }
                number
            }
        };
        let finish = async { tx.send(()).unwrap() };
        let first = flights.run(&"key", call(1, Some(rx)));
        let second = flights.run(&"key", call(2, None));
        let other = flights.run(&"other key", call(3, None));
        // Polled in this order.
        let results = tokio::join!(biased; first, second, other, finish);
        assert_eq!((results.0, results.1, results.2), (1, 1, 3));
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        assert_eq!(flights.run(&"key", call(4, None)).await, 4, "results are not cached");
    }

    #[tokio::test]
    async fn follower_makes_the_call_when_the_leader_is_dropped() {
        let flights = SingleFlight::new();
        let mut leader = Box::pin(flights.run(&"key", std::future::pending()));
        assert!(futures_util::poll!(&mut leader).is_pending());
        let mut follower = Box::pin(flights.run(&"key", async { 2 }));
        assert!(futures_util::poll!(&mut follower).is_pending());
        drop(leader);
        assert_eq!(follower.await, 2);
    }
}
