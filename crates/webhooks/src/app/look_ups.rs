//! Look-ups of host names: bounded in number, including those whose attempt has ended.
//!
//! The system's resolver blocks a thread and cannot be interrupted: a name server that does not answer holds it for tens of
//! seconds, longer than the attempt. So the look-up itself holds its places, and an attempt that gets none before its
//! deadline has failed and is retried. The first look-up of an organization has places that no further ones of any
//! organization can take: silent name servers of some organizations leave the others theirs.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex};

use assay_contracts::ids::OrganizationId;
use assay_platform::runtime::{BoxError, LockExt as _, blocking, spawn_and_wait};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// Maximum number of threads that look names up: for organizations with none under way, and beside these for further ones of
/// all organizations.
const FIRST_LOOK_UPS: usize = 128;
const FURTHER_LOOK_UPS: usize = 32;

/// Maximum number of further ones for one organization, whose name servers may never answer.
const FURTHER_PER_ORGANIZATION: usize = 3;

/// The addresses of a name, with port 0; blocks.
type Resolver = Arc<dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

pub(super) struct LookUps {
    first: Arc<Semaphore>,
    further: Arc<Semaphore>,
    /// Places of the organizations that have look-ups.
    by_organization: Mutex<HashMap<OrganizationId, Arc<OwnPlaces>>>,
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
        let [first, further] =
            [FIRST_LOOK_UPS, FURTHER_LOOK_UPS].map(|places| Arc::new(Semaphore::new(places)));
        Self { first, further, by_organization: Mutex::default(), private_names, resolver }
    }

    /// The addresses of `name`. Dropping the future gives up the wait for places, and leaves a look-up that has begun alone.
    pub(super) async fn find(
        &self,
        organization_id: OrganizationId,
        name: &str,
    ) -> Result<Vec<SocketAddr>, BoxError> {
        let names = candidates(name, self.private_names);
        let own = self.places_of(organization_id);
        let (first, further) = (self.first.clone(), self.further.clone());
        let resolver = self.resolver.clone();
        let waiting = async move {
            let places = tokio::select! {
                biased;
                places = both(&own.first, first) => places?,
                places = both(&own.further, further) => places?,
            };
            let found = blocking(move || {
                let _places = (own, places);
                first_found(&names, &resolver)
            });
            Ok::<_, BoxError>(found.await??)
        };
        spawn_and_wait(waiting).await?
    }

    fn places_of(&self, organization_id: OrganizationId) -> Arc<OwnPlaces> {
        let mut organizations = self.by_organization.locked();
        organizations.retain(|_, places| Arc::strong_count(places) > 1);
        organizations.entry(organization_id).or_default().clone()
    }
}

/// Places of one organization.
struct OwnPlaces {
    first: Arc<Semaphore>,
    further: Arc<Semaphore>,
}

impl Default for OwnPlaces {
    fn default() -> Self {
        let [first, further] = [1, FURTHER_PER_ORGANIZATION].map(|places| Arc::new(Semaphore::new(places)));
        Self { first, further }
    }
}

/// A place of the organization and then a common one: waiting for one of its own, an organization holds no common one.
async fn both(
    own: &Arc<Semaphore>,
    common: Arc<Semaphore>,
) -> Result<[OwnedSemaphorePermit; 2], AcquireError> {
    Ok([own.clone().acquire_owned().await?, common.acquire_owned().await?])
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
        let found = timeout(Duration::from_secs(1), look_ups.find(organization_id, name)).await;
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
        assert_eq!(silent.load(Ordering::SeqCst), 1 + FURTHER_PER_ORGANIZATION);
        assert!(attempt(&look_ups, other, "hooks.test").await, "another organization has places of its own");
        let organizations: Vec<OrganizationId> = (0..150).map(|_| new_id()).collect();
        let all = organizations.iter().flat_map(|one| vec![one; 6]);
        join_all(all.map(|one| attempt(&look_ups, *one, "silent.test"))).await;
        assert_eq!(silent.load(Ordering::SeqCst), FIRST_LOOK_UPS + FURTHER_LOOK_UPS);
        drop(server);
        let answered = async { while !attempt(&look_ups, one, "hooks.test").await {} };
        assert!(timeout(Duration::from_secs(5), answered).await.is_some(), "the places are given back");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn silent_name_servers_of_forty_organizations_leave_places() {
        let (look_ups, _server, silent) = with_silent_server();
        let organizations: Vec<OrganizationId> = (0..40).map(|_| new_id()).collect();
        let all = organizations.iter().flat_map(|one| vec![one; 10]);
        join_all(all.map(|one| attempt(&look_ups, *one, "silent.test"))).await;
        assert_eq!(silent.load(Ordering::SeqCst), 40 + FURTHER_LOOK_UPS);
        let others = (0..10).map(|_| async { attempt(&look_ups, new_id(), "hooks.test").await });
        assert!(join_all(others).await.into_iter().all(|found| found));
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
