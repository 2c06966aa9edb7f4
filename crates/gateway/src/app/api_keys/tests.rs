//! Lifetimes of grants, sharing of look-ups and their permits, in paused time.

use std::future::{pending, ready};
use std::sync::atomic::{AtomicUsize, Ordering};

use assay_contracts::tenant::Scopes;
use assay_platform::runtime::new_id;
use tokio::time::{advance, sleep};

use super::*;

type Answer = Result<Option<KeyGrant>, ClientError>;

const LIFETIME: Duration = Duration::from_secs(15);

const MAX_UNKNOWN: usize = 4;

const MOMENT: Duration = Duration::from_millis(1);

fn keys() -> ResolvedKeys {
    ResolvedKeys::new(LIFETIME, MAX_UNKNOWN)
}

fn hash(number: usize) -> ApiKeyHash {
    ApiKey::parse(&format!("a-key-of-the-tests-{number:013}")).unwrap().hash()
}

fn grant() -> KeyGrant {
    KeyGrant { key_id: new_id(), organization_id: new_id(), scopes: Scopes::from_iter([]) }
}

fn failure() -> ClientError {
    ClientError::Unreachable { service: "agent-registry", reason: "down".to_owned() }
}

/// Resolves the key, and returns whether it was looked up in the registry for that.
async fn looked_up(keys: &ResolvedKeys, hash: ApiKeyHash, answer: Answer) -> bool {
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
    let keys = keys();
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
    let keys = keys();
    let mut first = Box::pin(keys.get_or_resolve(hash(1), pending()));
    assert!(futures_util::poll!(&mut first).is_pending());
    let mut second = Box::pin(keys.get_or_resolve(hash(1), ready(Ok(None))));
    assert!(futures_util::poll!(&mut second).is_pending());
    drop(first);
    assert!(second.await.is_ok_and(|grant| grant.is_none()));
}

#[tokio::test(start_paused = true)]
async fn grants_and_unknown_keys_are_cached_for_their_lifetimes() {
    let keys = keys();
    let cached: [(fn() -> Answer, Duration); 2] =
        [(|| Ok(Some(grant())), LIFETIME), (|| Ok(None), UNKNOWN_LIFETIME)];
    for (number, (answer, lifetime)) in cached.into_iter().enumerate() {
        assert!(looked_up(&keys, hash(number), answer()).await);
        advance(lifetime - MOMENT).await;
        assert!(!looked_up(&keys, hash(number), answer()).await);
        advance(MOMENT).await;
        assert!(looked_up(&keys, hash(number), answer()).await);
    }
    assert!(looked_up(&keys, hash(2), Err(failure())).await);
    advance(MOMENT).await;
    assert!(looked_up(&keys, hash(2), Err(failure())).await, "a failure is not cached");
}

#[tokio::test(start_paused = true)]
async fn lifetime_counts_from_before_the_look_up() {
    let keys = ResolvedKeys::new(MAX_LIFETIME * 2, MAX_UNKNOWN);
    let slow = Duration::from_secs(8);
    let answer = async {
        sleep(slow).await;
        Ok(Some(grant()))
    };
    assert!(keys.get_or_resolve(hash(1), answer).await.is_ok());
    advance(MAX_LIFETIME - slow - MOMENT).await;
    assert!(!looked_up(&keys, hash(1), Ok(None)).await);
    advance(MOMENT).await;
    assert!(looked_up(&keys, hash(1), Ok(None)).await, "revoked 30 seconds before");
    assert_eq!(keys.get_or_resolve(hash(1), pending()).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn known_grant_is_used_while_the_registry_fails() {
    let keys = keys();
    let known = grant();
    looked_up(&keys, hash(1), Ok(Some(known.clone()))).await;
    advance(LIFETIME).await;
    let end = Instant::now() + GRACE_PERIOD;
    let mut calls = 0;
    while Instant::now() < end {
        let used = keys.get_or_resolve(hash(1), async { Err(failure()) }).await;
        assert_eq!(used.unwrap().as_ref(), Some(&known));
        calls += usize::from(looked_up(&keys, hash(1), Err(failure())).await);
        advance(RENEWAL_PAUSE / 4).await;
    }
    assert_eq!(calls, 0, "a second look-up at once after a failed one");
    assert!(keys.get_or_resolve(hash(1), async { Err(failure()) }).await.is_err());
    advance(MOMENT).await;
    assert!(looked_up(&keys, hash(1), Ok(Some(known))).await);
}

#[tokio::test(start_paused = true)]
async fn failed_renewal_of_a_known_grant_is_counted() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let rendered = recorder.handle();
    let _guard = ::metrics::set_default_local_recorder(&recorder);
    let keys = keys();
    looked_up(&keys, hash(1), Ok(Some(grant()))).await;
    looked_up(&keys, hash(2), Err(failure())).await;
    let counted = || rendered.render().lines().any(|line| line == "assay_key_renewal_failures_total 1");
    assert!(!counted(), "an unknown key is not renewed");
    advance(LIFETIME).await;
    assert!(looked_up(&keys, hash(1), Err(failure())).await);
    assert!(counted(), "{}", rendered.render());
}

#[tokio::test(start_paused = true)]
async fn known_grant_is_used_while_the_registry_is_slow() {
    let keys = keys();
    let known = grant();
    looked_up(&keys, hash(1), Ok(Some(known.clone()))).await;
    advance(LIFETIME).await;
    let began = Instant::now();
    assert_eq!(keys.get_or_resolve(hash(1), pending()).await.unwrap().as_ref(), Some(&known));
    assert_eq!(began.elapsed(), RENEWAL_DEADLINE);
    assert_eq!(keys.get_or_resolve(hash(1), pending()).await.unwrap(), Some(known));
    assert_eq!(began.elapsed(), RENEWAL_DEADLINE, "no second wait");
    // Never longer than the grace period, however a look-up ends: the next one ends a `RENEWAL_PAUSE` before its end.
    advance(GRACE_PERIOD - 2 * RENEWAL_DEADLINE - RENEWAL_PAUSE).await;
    assert!(keys.get_or_resolve(hash(1), pending()).await.is_ok());
    advance(RENEWAL_PAUSE).await;
    assert!(keys.get_or_resolve(hash(1), pending()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn revoked_key_is_not_used_while_the_registry_fails() {
    let keys = keys();
    looked_up(&keys, hash(1), Ok(Some(grant()))).await;
    advance(LIFETIME).await;
    assert_eq!(keys.get_or_resolve(hash(1), ready(Ok(None))).await.unwrap(), None);
    advance(UNKNOWN_LIFETIME).await;
    assert!(keys.get_or_resolve(hash(1), async { Err(failure()) }).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn abandoned_renewal_keeps_the_known_grant() {
    let keys = keys();
    let known = grant();
    looked_up(&keys, hash(1), Ok(Some(known.clone()))).await;
    advance(LIFETIME).await;
    let mut first = Box::pin(keys.get_or_resolve(hash(1), pending()));
    assert!(futures_util::poll!(&mut first).is_pending());
    let mut second = Box::pin(keys.get_or_resolve(hash(1), async { Err(failure()) }));
    assert!(futures_util::poll!(&mut second).is_pending());
    drop(first);
    assert_eq!(second.await.unwrap(), Some(known));
}

#[tokio::test(start_paused = true)]
async fn unknown_keys_do_not_delay_known_ones() {
    let keys = keys();
    let known = hash(0);
    looked_up(&keys, known, Ok(Some(grant()))).await;
    advance(LIFETIME).await;
    let mut made_up: Vec<_> =
        (1..=MAX_UNKNOWN).map(|number| Box::pin(keys.get_or_resolve(hash(number), pending()))).collect();
    for look_up in &mut made_up {
        assert!(futures_util::poll!(look_up).is_pending());
    }
    let began = Instant::now();
    let refused =
        keys.get_or_resolve(hash(MAX_UNKNOWN + 1), async { panic!("a call without a permit") }).await;
    assert!(matches!(refused.unwrap_err().as_ref(), LookUpError::Busy));
    assert_eq!(began.elapsed(), PERMIT_DEADLINE);
    assert!(looked_up(&keys, known, Ok(Some(grant()))).await, "a known key is renewed");
    // Also after the grace period of its grant.
    advance(LIFETIME + GRACE_PERIOD).await;
    assert!(looked_up(&keys, known, Err(failure())).await);
    advance(MOMENT).await;
    assert!(looked_up(&keys, known, Ok(Some(grant()))).await);
    drop(made_up);
    assert!(looked_up(&keys, hash(MAX_UNKNOWN + 1), Ok(None)).await, "permits are free again");
}

#[tokio::test(start_paused = true)]
async fn made_up_keys_do_not_displace_known_grants() {
    const KNOWN: usize = 2_000;
    let keys = keys();
    for number in 0..KNOWN {
        looked_up(&keys, hash(number), Ok(Some(grant()))).await;
    }
    // Every second one is answered; the look-ups of the others fail.
    for number in KNOWN..KNOWN + 2 * GRANTED_CAPACITY {
        let answer = || async move { if number % 2 == 0 { Ok(None) } else { Err(failure()) } };
        let hash = hash(number);
        let _ = tokio::join!(keys.get_or_resolve(hash, answer()), keys.get_or_resolve(hash, answer()));
    }
    advance(LIFETIME + GRACE_PERIOD - MOMENT).await;
    for number in 0..KNOWN {
        let used = keys.get_or_resolve(hash(number), async { Err(failure()) }).await;
        assert!(used.is_ok_and(|grant| grant.is_some()), "known key {number}");
    }
}

#[tokio::test(start_paused = true)]
async fn outage_is_logged_as_a_warning_every_ten_seconds() {
    let keys = keys();
    let mut warnings = 0;
    for _ in 0..30 {
        warnings += (0..100).filter(|_| keys.claim_warning()).count();
        advance(RENEWAL_PAUSE).await;
    }
    assert_eq!(warnings, 3, "in thirty seconds");
}

#[tokio::test(start_paused = true)]
async fn only_answers_of_the_registry_are_kept() {
    let keys = keys();
    looked_up(&keys, hash(1), Ok(Some(grant()))).await;
    looked_up(&keys, hash(2), Ok(None)).await;
    looked_up(&keys, hash(3), Err(failure())).await;
    assert_eq!((keys.granted.len(), keys.unknown.len()), (1, 1));
}
