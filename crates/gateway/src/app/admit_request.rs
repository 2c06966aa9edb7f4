//! Who is asking, and may they: API keys are resolved by agent-registry and remembered for a short time; each key may
//! have a rate limit.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_clients::{ClientError, RegistryClient};
use assay_contracts::ids::ApiKeyId;
use assay_contracts::internal::KeyGrant;
use assay_platform::auth::{ApiKey, ApiKeyHash};
use governor::clock::{Clock, DefaultClock};
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use quick_cache::sync::Cache;

use super::single_flight::SingleFlight;

/// Keys remembered at most.
const CACHE_CAPACITY: usize = 10_000;

/// A revoked key stops within this time at the latest.
const LONGEST_CACHE: Duration = Duration::from_secs(30);

/// An unknown key is remembered for so long, so that a client that repeats it costs the registry nothing. A key that was
/// tried before it was created works within this time after its creation; one that nobody tried works at once.
const UNKNOWN_LIFETIME: Duration = Duration::from_secs(1);

/// What the registry says of a key. A failure is that of everybody who waited for the same call.
type Resolved = Result<Option<KeyGrant>, Arc<ClientError>>;

/// Resolves API keys, and remembers the answers for a short time. A key that many use at once is one call.
pub(crate) struct KeyRing {
    registry: RegistryClient,
    cache: Cache<ApiKeyHash, (KeyGrant, Instant)>,
    unknown: Cache<ApiKeyHash, Instant>,
    calls: SingleFlight<ApiKeyHash, Resolved>,
    lifetime: Duration,
}

impl KeyRing {
    pub(crate) fn new(registry: RegistryClient, lifetime: Duration) -> Self {
        let (cache, unknown) = (Cache::new(CACHE_CAPACITY), Cache::new(CACHE_CAPACITY));
        let calls = SingleFlight::new();
        Self { registry, cache, unknown, calls, lifetime: lifetime.min(LONGEST_CACHE) }
    }

    /// The grant of a key; `None` when it is unknown, expired or revoked.
    pub(crate) async fn resolve(&self, key: &ApiKey) -> Resolved {
        let hash = key.hash();
        if let Some((grant, resolved_at)) = self.cache.get(&hash)
            && resolved_at.elapsed() < self.lifetime
        {
            return Ok(Some(grant));
        }
        if self.unknown.get(&hash).is_some_and(|asked_at| asked_at.elapsed() < UNKNOWN_LIFETIME) {
            return Ok(None);
        }
        self.calls.ask(&hash, self.ask_registry(hash)).await
    }

    async fn ask_registry(&self, hash: ApiKeyHash) -> Resolved {
        let grant = self.registry.resolve_key(&hash).await?;
        match &grant {
            Some(grant) => self.cache.insert(hash, (grant.clone(), Instant::now())),
            None => {
                self.cache.remove(&hash);
                self.unknown.insert(hash, Instant::now());
            }
        }
        Ok(grant)
    }
}

/// The same number of requests a second for each API key, with a burst of one second.
pub(crate) struct RateLimit {
    limiter: RateLimiter<ApiKeyId, HashMapStateStore<ApiKeyId>, DefaultClock>,
    clock: DefaultClock,
    per_second: NonZeroU32,
}

impl RateLimit {
    /// `None` for 0: no limit.
    pub(crate) fn new(per_second: u32) -> Option<Self> {
        let per_second = NonZeroU32::new(per_second)?;
        let limiter = RateLimiter::hashmap(Quota::per_second(per_second));
        Some(Self { limiter, clock: DefaultClock::default(), per_second })
    }

    /// Takes one request from the key's budget; when it is used up, how long to wait.
    pub(crate) fn check(&self, key: ApiKeyId) -> Result<(), Duration> {
        self.limiter.check_key(&key).map_err(|until| until.wait_time_from(self.clock.now()))
    }

    /// Requests a second.
    pub(crate) fn per_second(&self) -> u32 {
        self.per_second.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_platform::runtime::new_id;

    #[test]
    fn each_key_has_a_budget_of_its_own() {
        let limit = RateLimit::new(2).unwrap();
        let (one, other): (ApiKeyId, ApiKeyId) = (new_id(), new_id());
        assert!(limit.check(one).is_ok() && limit.check(one).is_ok());
        assert!(limit.check(one).unwrap_err() <= Duration::from_secs(1));
        assert!(limit.check(other).is_ok());
        assert!(RateLimit::new(0).is_none());
    }
}
