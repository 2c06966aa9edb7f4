//! API keys: resolved by agent-registry, cached for a short time.
//!
//! A grant is used for `gateway.key_cache_seconds`, counted from before its look-up, and then renewed. While the registry does not
//! answer, the known grant is used for [`MAX_OVERTIME`] longer. A key without a grant waits for one of few places, so that
//! made-up keys do not hold up renewals. When the registry answers that a key is unknown, expired or revoked, its grant ends at once.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use assay_clients::{ClientError, RegistryClient};
use assay_contracts::internal::KeyGrant;
use assay_platform::auth::{ApiKey, ApiKeyHash};
use assay_platform::runtime::timeout;
use quick_cache::sync::{Cache, EntryAction, EntryResult};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::metrics;

/// Maximum number of cached keys. The cache evicts keys that were used once before those in use, so made-up keys do not
/// displace real ones.
const CACHE_CAPACITY: usize = 20_000;

/// Maximum lifetime of a grant: a revoked key is rejected after this time at the latest, while the registry answers.
const MAX_LIFETIME: Duration = Duration::from_secs(30);

/// How much longer a grant is used while the registry does not answer.
const MAX_OVERTIME: Duration = Duration::from_secs(30);

/// Lifetime of a negative cache entry, so that a client repeating an unknown key costs the registry nothing. A key that
/// was tried before its creation works after this time; any other new key works at once.
const UNKNOWN_LIFETIME: Duration = Duration::from_secs(1);

/// Deadline of a look-up.
const LOOK_UP_DEADLINE: Duration = Duration::from_secs(10);

/// Deadline of a look-up while the known grant may be used.
const RENEWAL_DEADLINE: Duration = Duration::from_secs(2);

/// Pause after a failed renewal. Meanwhile requests with the key use the known grant without waiting.
const RENEWAL_PAUSE: Duration = Duration::from_secs(1);

/// How long a key without a grant waits for its place.
const PLACE_DEADLINE: Duration = Duration::from_secs(1);

/// The result of resolving a key. Concurrent callers share the error.
type Resolution = Result<Option<KeyGrant>, Arc<LookUpError>>;

/// A key could not be looked up. A retry may succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookUpError {
    /// The registry cannot be reached, or answered with an error.
    #[error(transparent)]
    Registry(#[from] ClientError),
    /// No answer in time.
    #[error("agent-registry did not answer in time")]
    TooSlow,
    /// Too many keys without a grant are looked up.
    #[error("too many unknown API keys are looked up at once")]
    Busy,
}

/// Resolves API keys through a cache. Concurrent requests with the same key share one call to the registry.
pub(crate) struct ApiKeyCache {
    registry: RegistryClient,
    resolved: ResolvedKeys,
}

impl ApiKeyCache {
    /// `lifetime` of grants, at most [`MAX_LIFETIME`]; at most `places` keys without a grant are looked up at once.
    pub(crate) fn new(registry: RegistryClient, lifetime: Duration, places: usize) -> Self {
        Self { registry, resolved: ResolvedKeys::new(lifetime, places) }
    }

    /// The grant of a key; `None` when it is unknown, expired or revoked.
    pub(crate) async fn resolve(&self, key: &ApiKey) -> Resolution {
        let hash = key.hash();
        self.resolved.get_or_resolve(hash, self.registry.resolve_key(&hash)).await
    }
}

struct ResolvedKeys {
    cache: Cache<ApiKeyHash, Entry>,
    lifetime: Duration,
    places: Semaphore,
}

#[derive(Clone)]
struct Entry {
    resolution: Resolution,
    answered_at: Instant,
    /// Until then the entry is used without another look-up.
    used_until: Instant,
    /// Until then its grant is used when a look-up fails.
    overtime_until: Instant,
    /// Whether the last answer of the registry was a grant.
    was_granted: bool,
}

impl ResolvedKeys {
    fn new(lifetime: Duration, places: usize) -> Self {
        let cache = Cache::new(CACHE_CAPACITY);
        Self { cache, lifetime: lifetime.min(MAX_LIFETIME), places: Semaphore::new(places) }
    }

    /// The cached result, or that of a concurrent call for the same key, or else that of `call`.
    async fn get_or_resolve(
        &self,
        hash: ApiKeyHash,
        call: impl Future<Output = Result<Option<KeyGrant>, ClientError>>,
    ) -> Resolution {
        let began = Instant::now();
        let entry = self.cache.entry_async(&hash, |_, entry| {
            // An error is shared with those who waited for it, and not cached.
            let is_used = entry.answered_at >= began || Instant::now() < entry.used_until;
            if is_used {
                EntryAction::Retain(entry.resolution.clone())
            } else {
                EntryAction::ReplaceWithGuard
            }
        });
        let (guard, previous) = match entry.await {
            EntryResult::Retained(resolution) => return resolution,
            EntryResult::Vacant(guard) => (guard, None),
            EntryResult::Replaced(guard, previous) => (guard, Some(previous)),
            // Not returned for the actions above.
            EntryResult::Removed(..) | EntryResult::Timeout => {
                return self.look_up(None, call).await.resolution;
            }
        };
        // When this future is dropped, for instance because the client disconnected, a waiting caller goes on with the
        // previous entry. Inserting fails when the entry was evicted meanwhile: then the result is not cached.
        let abandoned = previous.clone();
        let guard = OnDrop::new(guard, move |guard| {
            abandoned.map(|previous| guard.insert(previous));
        });
        let entry = self.look_up(previous, call).await;
        let resolution = entry.resolution.clone();
        if let Some(guard) = guard.into_inner() {
            let _ = guard.insert(entry);
        }
        resolution
    }

    async fn look_up(
        &self,
        previous: Option<Entry>,
        call: impl Future<Output = Result<Option<KeyGrant>, ClientError>>,
    ) -> Entry {
        let asked_at = Instant::now();
        let was_granted = previous.as_ref().is_some_and(|entry| entry.was_granted);
        let in_overtime =
            previous.filter(|entry| entry.resolution.is_ok() && asked_at < entry.overtime_until);
        let deadline = if in_overtime.is_some() { RENEWAL_DEADLINE } else { LOOK_UP_DEADLINE };
        let answer = async {
            let _place = if was_granted { None } else { Some(self.place().await?) };
            let answer = timeout(deadline, call).await.ok_or(LookUpError::TooSlow)?;
            answer.map_err(LookUpError::from)
        };
        match (answer.await, in_overtime) {
            (Ok(grant), _) => self.answered(grant, asked_at),
            (Err(error), Some(known)) if Instant::now() < known.overtime_until => {
                metrics::count_failed_renewal();
                tracing::warn!(cause = %error, "an API key could not be renewed: its known grant is used");
                known.paused()
            }
            (Err(error), _) => Entry::failed(error, was_granted),
        }
    }

    /// A place for the look-up of a key without a grant.
    async fn place(&self) -> Result<SemaphorePermit<'_>, LookUpError> {
        let place = timeout(PLACE_DEADLINE, self.places.acquire()).await;
        place.and_then(Result::ok).ok_or(LookUpError::Busy)
    }

    /// The entry of an answer. Its time is that of the question: the registry may have read the key at once, and the answer
    /// may have taken long.
    fn answered(&self, grant: Option<KeyGrant>, asked_at: Instant) -> Entry {
        let was_granted = grant.is_some();
        let lifetime = if was_granted { self.lifetime } else { UNKNOWN_LIFETIME };
        let overtime = if was_granted { self.lifetime + MAX_OVERTIME } else { Duration::ZERO };
        Entry {
            resolution: Ok(grant),
            answered_at: Instant::now(),
            used_until: asked_at + lifetime,
            overtime_until: asked_at + overtime,
            was_granted,
        }
    }
}

impl Entry {
    fn failed(error: LookUpError, was_granted: bool) -> Self {
        let now = Instant::now();
        let resolution = Err(Arc::new(error));
        Self { resolution, answered_at: now, used_until: now, overtime_until: now, was_granted }
    }

    /// The same grant, used without another look-up for a moment.
    fn paused(self) -> Self {
        let now = Instant::now();
        let used_until = (now + RENEWAL_PAUSE).min(self.overtime_until);
        Self { answered_at: now, used_until, ..self }
    }
}

/// A value that is passed to `then` when it is dropped before it was taken.
struct OnDrop<T, F: FnOnce(T)>(Option<(T, F)>);

impl<T, F: FnOnce(T)> OnDrop<T, F> {
    fn new(value: T, then: F) -> Self {
        Self(Some((value, then)))
    }

    fn into_inner(mut self) -> Option<T> {
        self.0.take().map(|(value, _)| value)
    }
}

impl<T, F: FnOnce(T)> Drop for OnDrop<T, F> {
    fn drop(&mut self) {
        if let Some((value, then)) = self.0.take() {
            then(value);
        }
    }
}

#[cfg(test)]
mod tests;
