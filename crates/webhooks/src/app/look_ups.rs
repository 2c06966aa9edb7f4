//! Look-ups of host names: bounded in number, including those whose attempt has ended.
//!
//! The system's resolver blocks a thread and cannot be interrupted: a name server that does not answer holds it for tens of
//! seconds, longer than the attempt. So the look-up itself holds its places, and an attempt that gets none before its
//! deadline has failed and is retried.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};

use assay_contracts::ids::OrganizationId;
use assay_platform::runtime::{BoxError, blocking, spawn_and_wait};
use tokio::sync::Semaphore;

/// Maximum number of threads that look names up.
const LOOK_UPS: usize = 32;

/// Maximum number of these for one organization, whose name servers may never answer.
const LOOK_UPS_PER_ORGANIZATION: usize = 8;

/// The addresses of a name, with port 0; blocks.
type Resolver = Arc<dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

pub(super) struct LookUps {
    places: Arc<Semaphore>,
    /// Places of the organizations that have look-ups.
    by_organization: Mutex<HashMap<OrganizationId, Arc<Semaphore>>>,
    /// Whether names of private networks may be meant.
    private_names: bool,
    resolver: Resolver,
}

impl LookUps {
    /// By the system's resolver.
    pub(super) fn new(private_names: bool) -> Self {
        Self::by(private_names, Arc::new(|name| Ok((name, 0).to_socket_addrs()?.collect())))
    }

    fn by(private_names: bool, resolver: Resolver) -> Self {
        let places = Arc::new(Semaphore::new(LOOK_UPS));
        Self { places, by_organization: Mutex::default(), private_names, resolver }
    }

    /// The addresses of `name`. Dropping the future gives up the wait for places, and leaves a look-up that has begun alone.
    pub(super) async fn find(
        &self,
        organization_id: OrganizationId,
        name: &str,
    ) -> Result<Vec<SocketAddr>, BoxError> {
        let names = candidates(name, self.private_names);
        let (own, all) = (self.places_of(organization_id), self.places.clone());
        let resolver = self.resolver.clone();
        let waiting = async move {
            // In this order: waiting for a place of its own, an organization holds no common one.
            let own = own.acquire_owned().await?;
            let common = all.acquire_owned().await?;
            let found = blocking(move || {
                let _places = (own, common);
                first_found(&names, &resolver)
            });
            Ok::<_, BoxError>(found.await??)
        };
        spawn_and_wait(waiting).await?
    }

    fn places_of(&self, organization_id: OrganizationId) -> Arc<Semaphore> {
        // No code path panics while it holds the lock.
        let mut organizations = self.by_organization.lock().unwrap_or_else(PoisonError::into_inner);
        organizations.retain(|_, places| Arc::strong_count(places) > 1);
        let new = || Arc::new(Semaphore::new(LOOK_UPS_PER_ORGANIZATION));
        organizations.entry(organization_id).or_insert_with(new).clone()
    }
}

fn first_found(names: &[String], resolver: &Resolver) -> io::Result<Vec<SocketAddr>> {
    let mut found = Err(io::ErrorKind::NotFound.into());
    for name in names {
        found = resolver(name);
        if found.is_ok() {
            break;
        }
    }
    found
}

/// A public name is absolute: the search domains of the system (five in a pod of Kubernetes) would only multiply the queries.
/// A name of a private network may depend on them, as may one without a dot.
fn candidates(name: &str, private_names: bool) -> Vec<String> {
    let is_absolute = name.ends_with('.');
    let absolute = (!is_absolute && name.contains('.')).then(|| format!("{name}."));
    match absolute {
        Some(absolute) if private_names => vec![absolute, name.to_owned()],
        Some(absolute) => vec![absolute],
        None => vec![name.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    use assay_platform::runtime::{new_id, timeout};
    use futures_util::future::join_all;

    use super::*;

    const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    /// A resolver whose name server does not answer for `silent.test` until the sender is dropped, with the number of these
    /// look-ups.
    fn with_silent_server() -> (LookUps, Sender<()>, Arc<AtomicUsize>) {
        let (sender, answer) = channel::<()>();
        let (answer, silent) = (Mutex::new(answer), Arc::new(AtomicUsize::new(0)));
        let counted = silent.clone();
        let resolver = move |name: &str| {
            if name == "silent.test." {
                counted.fetch_add(1, Ordering::SeqCst);
                let _ = answer.lock().unwrap().recv();
            }
            Ok(vec![ADDRESS])
        };
        (LookUps::by(false, Arc::new(resolver)), sender, silent)
    }

    async fn attempt(look_ups: &LookUps, organization_id: OrganizationId, name: &str) -> bool {
        let found = timeout(Duration::from_millis(300), look_ups.find(organization_id, name)).await;
        found.is_some_and(|found| found.is_ok())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn attempts_leave_a_bounded_number_of_look_ups() {
        let (look_ups, server, silent) = with_silent_server();
        let (one, other) = (new_id(), new_id());
        for _ in 0..3 {
            let found = join_all((0..50).map(|_| attempt(&look_ups, one, "silent.test"))).await;
            assert!(found.iter().all(|found| !found));
        }
        assert_eq!(silent.load(Ordering::SeqCst), LOOK_UPS_PER_ORGANIZATION);
        assert!(attempt(&look_ups, other, "hooks.test").await, "another organization has places of its own");
        let organizations: Vec<OrganizationId> = (0..10).map(|_| new_id()).collect();
        let all = organizations.iter().flat_map(|one| vec![one; 20]);
        join_all(all.map(|one| attempt(&look_ups, *one, "silent.test"))).await;
        assert_eq!(silent.load(Ordering::SeqCst), LOOK_UPS);
        drop(server);
        let answered = async { while !attempt(&look_ups, one, "hooks.test").await {} };
        assert!(timeout(Duration::from_secs(5), answered).await.is_some(), "the places are given back");
    }

    #[test]
    fn public_names_are_looked_up_without_search_domains() {
        assert_eq!(candidates("hooks.example.com", false), ["hooks.example.com."]);
        assert_eq!(candidates("hooks.example.com.", true), ["hooks.example.com."]);
        assert_eq!(
            candidates("receiver.finance.svc", true),
            ["receiver.finance.svc.", "receiver.finance.svc"]
        );
        assert_eq!(candidates("receiver", false), ["receiver"]);
    }
}
