//! Several who ask the same at the same time share one answer.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The calls that are under way, at most one for each key.
pub(crate) struct SingleFlight<K, V> {
    under_way: Mutex<HashMap<K, watch::Receiver<Option<V>>>>,
}

/// The one whose call it is. When it goes, nobody can join any more; those who wait without an answer ask themselves.
struct Leader<'f, K: Eq + Hash, V> {
    flights: &'f SingleFlight<K, V>,
    key: &'f K,
    tell: watch::Sender<Option<V>>,
}

enum Place<'f, K: Eq + Hash, V> {
    Leader(Leader<'f, K, V>),
    Passenger(watch::Receiver<Option<V>>),
}

impl<K: Clone + Eq + Hash, V: Clone> SingleFlight<K, V> {
    pub(crate) fn new() -> Self {
        Self { under_way: Mutex::default() }
    }

    /// The answer to a call for `key`: the one that is under way, or else `call`, whose answer is also that of all who
    /// ask before it is there. Nothing is remembered.
    pub(crate) async fn ask(&self, key: &K, call: impl Future<Output = V>) -> V {
        loop {
            match self.place(key) {
                Place::Leader(leader) => {
                    let answer = call.await;
                    leader.tell.send_replace(Some(answer.clone()));
                    return answer;
                }
                Place::Passenger(mut told) => {
                    // An error says that the leader was given up, for instance because its client hung up.
                    if let Ok(answer) = told.wait_for(Option::is_some).await
                        && let Some(answer) = answer.as_ref()
                    {
                        return answer.clone();
                    }
                }
            }
        }
    }

    fn place<'f>(&'f self, key: &'f K) -> Place<'f, K, V> {
        match self.lock().entry(key.clone()) {
            Entry::Occupied(flight) => Place::Passenger(flight.get().clone()),
            Entry::Vacant(free) => {
                let (tell, told) = watch::channel(None);
                free.insert(told);
                Place::Leader(Leader { flights: self, key, tell })
            }
        }
    }
}

impl<K: Eq + Hash, V> SingleFlight<K, V> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, watch::Receiver<Option<V>>>> {
        // Nothing panics while the lock is held.
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
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
    async fn who_asks_while_a_call_is_under_way_shares_its_answer() {
        let (flights, calls) = (SingleFlight::new(), AtomicUsize::new(0));
        let (land, landed) = oneshot::channel::<()>();
        let call = |number: usize, landed: Option<oneshot::Receiver<()>>| {
            let calls = &calls;
            async move {
                calls.fetch_add(1, Ordering::Relaxed);
                if let Some(landed) = landed {
                    landed.await.unwrap();
                }
                number
            }
        };
        let land = async { land.send(()).unwrap() };
        let first = flights.ask(&"key", call(1, Some(landed)));
        let second = flights.ask(&"key", call(2, None));
        let other = flights.ask(&"other key", call(3, None));
        // Polled in this order.
        let answers = tokio::join!(biased; first, second, other, land);
        assert_eq!((answers.0, answers.1, answers.2), (1, 1, 3));
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        assert_eq!(flights.ask(&"key", call(4, None)).await, 4, "nothing is remembered");
    }

    #[tokio::test]
    async fn who_waits_asks_when_the_one_who_called_is_gone() {
        let flights = SingleFlight::new();
        let mut given_up = Box::pin(flights.ask(&"key", std::future::pending()));
        assert!(futures_util::poll!(&mut given_up).is_pending());
        let mut waits = Box::pin(flights.ask(&"key", async { 2 }));
        assert!(futures_util::poll!(&mut waits).is_pending());
        drop(given_up);
        assert_eq!(waits.await, 2);
    }
}
