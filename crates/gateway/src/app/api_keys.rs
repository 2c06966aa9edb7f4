//! API keys: resolved by agent-registry, cached for a short time.
//!
//! A grant is used for `gateway.key_cache_seconds`, counted from before its look-up, and then renewed. While its
//! renewal fails, it is used for [`GRACE_PERIOD`] longer. A key without a grant needs one of few permits for its
//! look-up, so that made-up keys do not delay renewals. Keys that never had a grant have a separate cache, so that they
//! do not displace the others. When the registry answers that a key is unknown, expired or revoked, its grant ends at
//! once.

use std::convert::Infallible;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use assay_clients::{ClientError, RegistryClient};
use assay_contracts::internal::KeyGrant;
use assay_platform::auth::{ApiKey, ApiKeyHash};
use assay_platform::runtime::{LockExt as _, timeout};
use quick_cache::sync::Cache;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::metrics;

/// Maximum number of cached keys that have or had a grant.
const GRANTED_CAPACITY: usize = 20_000;

/// Maximum number of other cached keys.
const UNKNOWN_CAPACITY: usize = 4_000;

/// Maximum lifetime of a grant: a revoked key is rejected after this time at the latest, while the registry answers.
const MAX_LIFETIME: Duration = Duration::from_secs(30);

/// How much longer a grant is used while its renewal fails.
const GRACE_PERIOD: Duration = Duration::from_secs(30);

/// Lifetime of a negative cache entry: a client repeating an unknown key costs the registry one look-up in this time. A
/// key that was tried before its creation works after this time; any other new key works at once.
const UNKNOWN_LIFETIME: Duration = Duration::from_secs(1);

/// Deadline of a look-up while there is no usable grant.
const LOOK_UP_DEADLINE: Duration = Duration::from_secs(10);

/// Deadline of a look-up while the known grant may be used.
const RENEWAL_DEADLINE: Duration = Duration::from_secs(2);

/// Pause after a failed renewal. Meanwhile requests with the key use the known grant without waiting.
const RENEWAL_PAUSE: Duration = Duration::from_secs(1);

/// Failed renewals are logged as warnings at most this often; the metric counts all of them.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);

/// How long a key without a grant waits for a permit.
const PERMIT_DEADLINE: Duration = Duration::from_secs(1);

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
    /// Too many keys without a grant are looked up at once.
    #[error("too many unknown API keys are looked up at once")]
    Busy,
}

/// Resolves API keys through a cache. Concurrent requests with the same key share one call to the registry.
pub(crate) struct ApiKeyCache {
    registry: RegistryClient,
    resolved: ResolvedKeys,
}

impl ApiKeyCache {
    /// Grants are used for `lifetime`, at most [`MAX_LIFETIME`]; at most `max_unknown` keys without a grant are looked up at once.
    pub(crate) fn new(registry: RegistryClient, lifetime: Duration, max_unknown: usize) -> Self {
        Self { registry, resolved: ResolvedKeys::new(lifetime, max_unknown) }
    }

    /// The grant of a key; `None` when it is unknown, expired or revoked.
    pub(crate) async fn resolve(&self, key: &ApiKey) -> Resolution {
        let hash = key.hash();
        self.resolved.get_or_resolve(hash, self.registry.resolve_key(&hash)).await
    }
}

struct ResolvedKeys {
    /// Keys that have or had a grant. Only a grant creates an entry.
    granted: Cache<ApiKeyHash, Arc<CachedKey>>,
    /// Other keys: those being looked up, and those with a negative answer.
    unknown: Cache<ApiKeyHash, Arc<CachedKey>>,
    lifetime: Duration,
    /// For look-ups of keys without a grant.
    unknown_permits: Semaphore,
    /// When a failed renewal was last logged as a warning.
    warned_at: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct CachedKey {
    /// `None` until the first look-up ends.
    entry: Mutex<Option<Entry>>,
    /// Held during a look-up: concurrent callers wait for its result.
    look_up: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Entry {
    outcome: Outcome,
    /// When its look-up ended.
    ended_at: Instant,
    /// Until then the entry is used without another look-up.
    fresh_until: Instant,
}

#[derive(Clone)]
enum Outcome {
    Granted {
        grant: KeyGrant,
        /// Until then the grant is used when a renewal fails.
        grace_until: Instant,
    },
    /// The registry has no valid key.
    Unknown,
    Failed {
        error: Arc<LookUpError>,
        /// Whether the last answer of the registry was a grant.
        was_granted: bool,
    },
}

impl ResolvedKeys {
    fn new(lifetime: Duration, max_unknown: usize) -> Self {
        Self {
            granted: Cache::new(GRANTED_CAPACITY),
            unknown: Cache::new(UNKNOWN_CAPACITY),
            lifetime: lifetime.min(MAX_LIFETIME),
            unknown_permits: Semaphore::new(max_unknown),
            warned_at: Mutex::default(),
        }
    }

    /// The cached result, or else the result of a concurrent call for the same key, or else that of `call`. When this future is
    /// dropped, for instance because the client disconnected, a waiting caller makes the call.
    async fn get_or_resolve(
        &self,
        hash: ApiKeyHash,
        call: impl Future<Output = Result<Option<KeyGrant>, ClientError>>,
    ) -> Resolution {
        let began = Instant::now();
        let key = self.cached_key(hash);
        if let Some(resolution) = key.usable(began) {
            return resolution;
        }
        let _look_up = key.look_up.lock().await;
        if let Some(resolution) = key.usable(began) {
            return resolution;
        }
        let previous = key.entry().clone();
        let entry = self.look_up(previous, call).await;
        *key.entry() = Some(entry.clone());
        match entry.outcome {
            // First inserted, then removed, so that a concurrent caller always finds the key.
            Outcome::Granted { .. } => {
                self.granted.insert(hash, key.clone());
                self.unknown.remove(&hash);
            }
            // Not cached. Waiting callers hold the key already.
            Outcome::Failed { .. } => {
                self.unknown.remove(&hash);
            }
            Outcome::Unknown => {}
        }
        entry.resolution()
    }

    fn cached_key(&self, hash: ApiKeyHash) -> Arc<CachedKey> {
        self.granted.get(&hash).unwrap_or_else(|| {
            let made: Result<_, Infallible> = self.unknown.get_or_insert_with(&hash, || Ok(Arc::default()));
            made.unwrap_or_else(|never| match never {})
        })
    }

    async fn look_up(
        &self,
        previous: Option<Entry>,
        call: impl Future<Output = Result<Option<KeyGrant>, ClientError>>,
    ) -> Entry {
        let asked_at = Instant::now();
        let was_granted = previous.as_ref().is_some_and(Entry::was_granted);
        let known_grant = previous.and_then(|entry| entry.grant_in_grace(asked_at));
        let deadline = if known_grant.is_some() { RENEWAL_DEADLINE } else { LOOK_UP_DEADLINE };
        let answer = async {
            let _permit = if was_granted { None } else { Some(self.acquire_permit().await?) };
            let answer = timeout(deadline, call).await.ok_or(LookUpError::TooSlow)?;
            answer.map_err(LookUpError::from)
        };
        match (answer.await, known_grant) {
            (Ok(grant), _) => self.answered(grant, asked_at),
            (Err(error), Some((grant, grace_until))) if Instant::now() < grace_until => {
                self.report_failed_renewal(&error);
                Entry::not_renewed(grant, grace_until)
            }
            (Err(error), _) => Entry::failed(error, was_granted),
        }
    }

    /// A permit for the look-up of a key without a grant.
    async fn acquire_permit(&self) -> Result<SemaphorePermit<'_>, LookUpError> {
        let permit = timeout(PERMIT_DEADLINE, self.unknown_permits.acquire()).await;
        permit.and_then(Result::ok).ok_or(LookUpError::Busy)
    }

    /// The entry of an answer. Its lifetime begins with the call: the registry may have read the key at once, and its answer
    /// may have taken long.
    fn answered(&self, grant: Option<KeyGrant>, asked_at: Instant) -> Entry {
        let lifetime = if grant.is_some() { self.lifetime } else { UNKNOWN_LIFETIME };
        let grace_until = asked_at + self.lifetime + GRACE_PERIOD;
        let outcome = grant.map_or(Outcome::Unknown, |grant| Outcome::Granted { grant, grace_until });
        Entry { outcome, ended_at: Instant::now(), fresh_until: asked_at + lifetime }
    }

    /// Logs few warnings: in an outage the renewal of every known key fails, once per [`RENEWAL_PAUSE`].
    fn report_failed_renewal(&self, error: &LookUpError) {
        metrics::count_failed_renewal();
        if self.claim_warning() {
            tracing::warn!(cause = %error, "API keys could not be renewed: their known grants are used");
        } else {
            tracing::debug!(cause = %error, "an API key could not be renewed: its known grant is used");
        }
    }

    /// Whether [`WARNING_INTERVAL`] has passed since the last warning; if so, the next interval begins.
    fn claim_warning(&self) -> bool {
        let now = Instant::now();
        let mut warned_at = self.warned_at.locked();
        let is_due = warned_at.is_none_or(|warned_at| now >= warned_at + WARNING_INTERVAL);
        if is_due {
            *warned_at = Some(now);
        }
        is_due
    }
}

impl CachedKey {
    fn entry(&self) -> MutexGuard<'_, Option<Entry>> {
        self.entry.locked()
    }

    /// The resolution that a caller may use without a look-up: that of a fresh entry, or of a look-up that ended after the caller
    /// `began` to wait. So an error is shared with the callers that waited for it, and is not cached.
    fn usable(&self, began: Instant) -> Option<Resolution> {
        let entry = self.entry();
        let entry = entry.as_ref()?;
        (entry.ended_at >= began || Instant::now() < entry.fresh_until).then(|| entry.resolution())
    }
}

impl Entry {
    fn failed(error: LookUpError, was_granted: bool) -> Self {
        let now = Instant::now();
        Self {
            outcome: Outcome::Failed { error: Arc::new(error), was_granted },
            ended_at: now,
            fresh_until: now,
        }
    }

    fn resolution(&self) -> Resolution {
        match &self.outcome {
            Outcome::Granted { grant, .. } => Ok(Some(grant.clone())),
            Outcome::Unknown => Ok(None),
            Outcome::Failed { error, .. } => Err(error.clone()),
        }
    }

    const fn was_granted(&self) -> bool {
        matches!(self.outcome, Outcome::Granted { .. } | Outcome::Failed { was_granted: true, .. })
    }

    /// The grant that is used when a look-up fails, and until when.
    fn grant_in_grace(self, now: Instant) -> Option<(KeyGrant, Instant)> {
        match self.outcome {
            Outcome::Granted { grant, grace_until } if now < grace_until => Some((grant, grace_until)),
            _ => None,
        }
    }

    /// A known grant whose renewal failed: used without another look-up for [`RENEWAL_PAUSE`].
    fn not_renewed(grant: KeyGrant, grace_until: Instant) -> Self {
        let now = Instant::now();
        let fresh_until = (now + RENEWAL_PAUSE).min(grace_until);
        Self { outcome: Outcome::Granted { grant, grace_until }, ended_at: now, fresh_until }
    }
}

#[cfg(test)]
mod tests;
