//! DNS look-ups: bounded in number, including those whose attempt has ended.
//!
//! The system's resolver blocks a thread and cannot be interrupted: with a name server that does not answer it blocks for
//! tens of seconds, longer than an attempt. So the look-up holds the permits, not the attempt. An attempt without permits
//! at its deadline fails and is retried. The first concurrent look-up of each organization uses permits that further look-ups
//! cannot take: silent name servers of some organizations do not block the others.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex};

use assay_contracts::ids::OrganizationId;
use assay_platform::runtime::{BoxError, LockExt as _, blocking, spawn_and_wait};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// Maximum number of concurrent look-ups of which each is the first one of its organization.
const MAX_FIRST: usize = 128;

/// Maximum number of concurrent further look-ups of all organizations.
const MAX_FURTHER: usize = 32;

/// Maximum number of concurrent further look-ups of one organization.
const MAX_FURTHER_PER_ORGANIZATION: usize = 3;

/// The addresses of a name, with port 0; blocks.
type Resolver = Arc<dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

pub(super) struct LookUps {
    first: Arc<Semaphore>,
    further: Arc<Semaphore>,
    /// Permits of the organizations with look-ups that run or wait.
    by_organization: Mutex<HashMap<OrganizationId, Arc<OrganizationPermits>>>,
    /// Whether endpoints may be in private networks.
    has_private_networks: bool,
    resolver: Resolver,
}

impl LookUps {
    /// Look-ups with the system's resolver.
    pub(super) fn new(has_private_networks: bool) -> Self {
        let resolver: Resolver = Arc::new(|name| Ok((name, 0).to_socket_addrs()?.collect()));
        Self::with_resolver(has_private_networks, resolver)
    }

    fn with_resolver(has_private_networks: bool, resolver: Resolver) -> Self {
        let [first, further] = [MAX_FIRST, MAX_FURTHER].map(|permits| Arc::new(Semaphore::new(permits)));
        Self { first, further, by_organization: Mutex::default(), has_private_networks, resolver }
    }

    /// The addresses of `name`. Dropping the future ends the wait for permits, but not a look-up that has started.
    pub(super) async fn find(
        &self,
        organization_id: OrganizationId,
        name: &str,
    ) -> Result<Vec<SocketAddr>, BoxError> {
        let names = candidates(name, self.has_private_networks);
        let organization = self.permits_of(organization_id);
        let (first, further) = (self.first.clone(), self.further.clone());
        let resolver = self.resolver.clone();
        let look_up = async move {
            let permits = tokio::select! {
                biased;
                permits = acquire_both(&organization.first, first) => permits?,
                permits = acquire_both(&organization.further, further) => permits?,
            };
            let found = blocking(move || {
                let _held = (organization, permits);
                resolve_first(&names, &resolver)
            });
            Ok::<_, BoxError>(found.await??)
        };
        spawn_and_wait(look_up).await?
    }

    fn permits_of(&self, organization_id: OrganizationId) -> Arc<OrganizationPermits> {
        let mut organizations = self.by_organization.locked();
        // Look-ups that run or wait hold the permits of their organization, too: the others are removed.
        organizations.retain(|_, permits| Arc::strong_count(permits) > 1);
        organizations.entry(organization_id).or_default().clone()
    }
}

/// Permits of one organization. Each look-up needs one of these and one of [`LookUps`].
struct OrganizationPermits {
    first: Arc<Semaphore>,
    further: Arc<Semaphore>,
}

impl Default for OrganizationPermits {
    fn default() -> Self {
        let [first, further] =
            [1, MAX_FURTHER_PER_ORGANIZATION].map(|permits| Arc::new(Semaphore::new(permits)));
        Self { first, further }
    }
}

/// Acquires a permit of the organization, then a shared one: a look-up that waits for its organization holds no shared permit.
async fn acquire_both(
    organization: &Arc<Semaphore>,
    shared: Arc<Semaphore>,
) -> Result<[OwnedSemaphorePermit; 2], AcquireError> {
    Ok([organization.clone().acquire_owned().await?, shared.acquire_owned().await?])
}

/// The addresses of the first name that resolves.
fn resolve_first(names: &[String], resolver: &Resolver) -> io::Result<Vec<SocketAddr>> {
    let mut found = Err(io::ErrorKind::NotFound.into());
    for name in names {
        found = resolver(name);
        if found.is_ok() {
            break;
        }
    }
    found
}

/// The names to resolve, in order. A trailing dot makes a name absolute. Public names are made absolute, because the search
/// domains of the system (five in a pod of Kubernetes) would only multiply the queries. Names of private networks and names
/// without a dot may depend on the search domains.
fn candidates(name: &str, has_private_networks: bool) -> Vec<String> {
    let is_absolute = name.ends_with('.');
    let absolute = (!is_absolute && name.contains('.')).then(|| format!("{name}."));
    match absolute {
        Some(absolute) if has_private_networks => vec![absolute, name.to_owned()],
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

    /// A resolver that blocks on `silent.test` until the sender is dropped, and the number of look-ups of that name.
    fn with_silent_server() -> (LookUps, Sender<()>, Arc<AtomicUsize>) {
        let (sender, answer) = channel::<()>();
        let (answer, silent_look_ups) = (Mutex::new(answer), Arc::new(AtomicUsize::new(0)));
        let counted = silent_look_ups.clone();
        let resolver = move |name: &str| {
            if name == "silent.test." {
                counted.fetch_add(1, Ordering::SeqCst);
                let _ = answer.lock().unwrap().recv();
            }
            Ok(vec![ADDRESS])
        };
        (LookUps::with_resolver(false, Arc::new(resolver)), sender, silent_look_ups)
    }

    /// Whether the name is resolved before the deadline of the attempt.
    async fn attempt(look_ups: &LookUps, organization_id: OrganizationId, name: &str) -> bool {
        let found = timeout(Duration::from_secs(1), look_ups.find(organization_id, name)).await;
        found.is_some_and(|found| found.is_ok())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn look_ups_of_ended_attempts_are_bounded() {
        let (look_ups, server, silent_look_ups) = with_silent_server();
        let (one, other) = (new_id(), new_id());
        for _ in 0..3 {
            let found = join_all((0..50).map(|_| attempt(&look_ups, one, "silent.test"))).await;
            assert!(found.iter().all(|found| !found));
        }
        assert_eq!(silent_look_ups.load(Ordering::SeqCst), 1 + MAX_FURTHER_PER_ORGANIZATION);
        assert!(attempt(&look_ups, other, "hooks.test").await, "another organization has its own permits");
        let organizations: Vec<OrganizationId> = (0..150).map(|_| new_id()).collect();
        let attempts = organizations.iter().flat_map(|id| vec![id; 6]);
        join_all(attempts.map(|id| attempt(&look_ups, *id, "silent.test"))).await;
        assert_eq!(silent_look_ups.load(Ordering::SeqCst), MAX_FIRST + MAX_FURTHER);
        drop(server);
        let answered = async { while !attempt(&look_ups, one, "hooks.test").await {} };
        assert!(timeout(Duration::from_secs(5), answered).await.is_some(), "the permits are released");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn silent_name_servers_of_forty_organizations_do_not_block_others() {
        let (look_ups, _server, silent_look_ups) = with_silent_server();
        let organizations: Vec<OrganizationId> = (0..40).map(|_| new_id()).collect();
        let attempts = organizations.iter().flat_map(|id| vec![id; 10]);
        join_all(attempts.map(|id| attempt(&look_ups, *id, "silent.test"))).await;
        assert_eq!(silent_look_ups.load(Ordering::SeqCst), 40 + MAX_FURTHER);
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
