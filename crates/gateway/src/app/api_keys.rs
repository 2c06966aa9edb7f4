//! API keys: resolved by agent-registry, cached for a short time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_clients::{ClientError, RegistryClient};
use assay_contracts::internal::KeyGrant;
use assay_platform::auth::{ApiKey, ApiKeyHash};
use quick_cache::sync::Cache;

use super::single_flight::SingleFlight;

/// Maximum number of cached keys.
const CACHE_CAPACITY: usize = 10_000;

/// Maximum lifetime of a cache entry: a revoked key is rejected after this time at the latest.
const MAX_LIFETIME: Duration = Duration::from_secs(30);

/// Lifetime of a negative cache entry, so that a client repeating an unknown key costs the registry nothing. A key that
/// was tried before its creation works after this time; any other new key works at once.
const UNKNOWN_LIFETIME: Duration = Duration::from_secs(1);

/// The result of resolving a key. Concurrent callers share the error.
type Resolution = Result<Option<KeyGrant>, Arc<ClientError>>;

/// Resolves API keys through a cache. Concurrent requests with the same key share one call to the registry.
pub(crate) struct ApiKeyCache {
    registry: RegistryClient,
    grants: Cache<ApiKeyHash, (KeyGrant, Instant)>,
    unknown: Cache<ApiKeyHash, Instant>,
    calls: SingleFlight<ApiKeyHash, Resolution>,
    lifetime: Duration,
}

impl ApiKeyCache {
    pub(crate) fn new(registry: RegistryClient, lifetime: Duration) -> Self {
        let (grants, unknown) = (Cache::new(CACHE_CAPACITY), Cache::new(CACHE_CAPACITY));
        let calls = SingleFlight::new();
        Self { registry, grants, unknown, calls, lifetime: lifetime.min(MAX_LIFETIME) }
    }

    /// The grant of a key; `None` when it is unknown, expired or revoked.
    pub(crate) async fn resolve(&self, key: &ApiKey) -> Resolution {
        let hash = key.hash();
        if let Some((grant, resolved_at)) = self.grants.get(&hash)
            && resolved_at.elapsed() < self.lifetime
        {
            return Ok(Some(grant));
        }
        if self.unknown.get(&hash).is_some_and(|resolved_at| resolved_at.elapsed() < UNKNOWN_LIFETIME) {
            return Ok(None);
        }
        self.calls.run(&hash, self.fetch(hash)).await
    }

    async fn fetch(&self, hash: ApiKeyHash) -> Resolution {
        let grant = self.registry.resolve_key(&hash).await?;
        match &grant {
            Some(grant) => self.grants.insert(hash, (grant.clone(), Instant::now())),
            None => {
                self.grants.remove(&hash);
                self.unknown.insert(hash, Instant::now());
            }
        }
        Ok(grant)
    }
}
