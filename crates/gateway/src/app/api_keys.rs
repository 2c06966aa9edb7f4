//! API keys: resolved by agent-registry, cached for a short time.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use assay_clients::{ClientError, RegistryClient};
use assay_contracts::internal::KeyGrant;
use assay_platform::auth::{ApiKey, ApiKeyHash};
use quick_cache::sync::{Cache, EntryAction, EntryResult};
use tokio::time::Instant;

/// Maximum number of cached keys. The cache evicts keys that were used once before those in use, so made-up keys do not
/// displace real ones.
const CACHE_CAPACITY: usize = 20_000;

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
    resolved: ResolvedKeys,
}

impl ApiKeyCache {
    pub(crate) fn new(registry: RegistryClient, lifetime: Duration) -> Self {
        Self { registry, resolved: ResolvedKeys::new(lifetime) }
    }

    /// The grant of a key; `None` when it is unknown, expired or revoked.
    pub(crate) async fn resolve(&self, key: &ApiKey) -> Resolution {
        let hash = key.hash();
        self.resolved.get_or_resolve(hash, self.registry.resolve_key(&hash)).await
    }
}

struct ResolvedKeys {
    cache: Cache<ApiKeyHash, (Resolution, Instant)>,
    lifetime: Duration,
}

impl ResolvedKeys {
    fn new(lifetime: Duration) -> Self {
        Self { cache: Cache::new(CACHE_CAPACITY), lifetime: lifetime.min(MAX_LIFETIME) }
    }

    /// The cached result, or that of a concurrent call for the same key, or else that of `call`.
    async fn get_or_resolve(
        &self,
        hash: ApiKeyHash,
        call: impl Future<Output = Result<Option<KeyGrant>, ClientError>>,
    ) -> Resolution {
        let began = Instant::now();
        let entry = self.cache.entry_async(&hash, |_, (resolution, resolved_at)| {
            // An error is shared with those who waited for it, and not cached.
            let is_valid = *resolved_at >= began || resolved_at.elapsed() < self.lifetime_of(resolution);
            if is_valid { EntryAction::Retain(resolution.clone()) } else { EntryAction::ReplaceWithGuard }
        });
        let guard = match entry.await {
            EntryResult::Retained(resolution) => return resolution,
            EntryResult::Vacant(guard) | EntryResult::Replaced(guard, _) => guard,
            // Not returned for the actions above.
            EntryResult::Removed(..) | EntryResult::Timeout => return call.await.map_err(Arc::new),
        };
        // When this future is dropped, for instance because the client disconnected, the guard passes to a waiting caller.
        let resolution = call.await.map_err(Arc::new);
        // Fails when the entry was evicted meanwhile: then the result is not cached.
        let _ = guard.insert((resolution.clone(), Instant::now()));
        resolution
    }

    fn lifetime_of(&self, resolution: &Resolution) -> Duration {
        match resolution {
            Ok(Some(_)) => self.lifetime,
            Ok(None) => UNKNOWN_LIFETIME,
            Err(_) => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use assay_contracts::tenant::Scopes;
    use assay_platform::runtime::new_id;
    use tokio::time::{advance, sleep};

    use super::*;

    type Answer = Result<Option<KeyGrant>, ClientError>;

    const LIFETIME: Duration = Duration::from_secs(15);

    fn hash(number: usize) -> ApiKeyHash {
        ApiKey::parse(&format!("test-key-{number:012}")).unwrap().hash()
    }

    fn grant() -> KeyGrant {
        KeyGrant { key_id: new_id(), organization_id: new_id(), scopes: Scopes::from_iter([]) }
    }

    fn failure() -> ClientError {
        ClientError::Unreachable { service: "agent-registry", reason: "down".to_owned() }
    }

    /// Resolves the key, and returns whether that took a call.
    async fn is_called(keys: &ResolvedKeys, hash: ApiKeyHash, answer: Answer) -> bool {
        let calls = AtomicUsize::new(0);
        let call = async {
            calls.fetch_add(1, Ordering::Relaxed);
            answer
        };
        let _ = keys.get_or_resolve(hash, call).await;
        calls.into_inner() == 1
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_callers_share_one_call_and_its_error() {
        let keys = ResolvedKeys::new(LIFETIME);
        for answer in [Ok(Some(grant())), Err(failure())] {
            let slow = async {
                sleep(Duration::from_millis(10)).await;
                answer
            };
            let first = keys.get_or_resolve(hash(1), slow);
            let second = keys.get_or_resolve(hash(1), async { panic!("a second call") });
            let (first, second) = tokio::join!(biased; first, second);
            assert_eq!(first.is_ok(), second.is_ok());
            assert_eq!(first.ok(), second.ok());
            advance(LIFETIME).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_caller_makes_the_call_when_the_first_is_dropped() {
        let keys = ResolvedKeys::new(LIFETIME);
        let mut first = Box::pin(keys.get_or_resolve(hash(1), pending()));
        assert!(futures_util::poll!(&mut first).is_pending());
        let mut second = Box::pin(keys.get_or_resolve(hash(1), ready(Ok(None))));
        assert!(futures_util::poll!(&mut second).is_pending());
        drop(first);
        assert!(second.await.is_ok_and(|grant| grant.is_none()));
    }

    #[tokio::test(start_paused = true)]
    async fn result_is_cached_for_the_lifetime_of_its_kind() {
        let keys = ResolvedKeys::new(LIFETIME);
        let kinds: [(fn() -> Answer, Duration); 3] = [
            (|| Ok(Some(grant())), LIFETIME),
            (|| Ok(None), UNKNOWN_LIFETIME),
            (|| Err(failure()), Duration::from_millis(1)),
        ];
        for (number, (answer, lifetime)) in kinds.into_iter().enumerate() {
            assert!(is_called(&keys, hash(number), answer()).await);
            advance(lifetime - Duration::from_millis(1)).await;
            assert!(number == 2 || !is_called(&keys, hash(number), answer()).await);
            advance(Duration::from_millis(1)).await;
            assert!(is_called(&keys, hash(number), answer()).await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn made_up_keys_do_not_displace_a_key_in_use() {
        let keys = ResolvedKeys::new(LIFETIME);
        for _ in 0..3 {
            // Renewed at each round.
            advance(LIFETIME).await;
            is_called(&keys, hash(0), Ok(Some(grant()))).await;
            assert!(!is_called(&keys, hash(0), Ok(Some(grant()))).await);
            for number in 1..=2 * CACHE_CAPACITY {
                is_called(&keys, hash(number), Ok(None)).await;
            }
            assert!(!is_called(&keys, hash(0), Ok(Some(grant()))).await);
        }
    }
}
