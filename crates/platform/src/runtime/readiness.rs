//! Readiness: a set of named checks, and a latch for shutdown.
//!
//! A failed check makes the role unready, or, for a dependency that it can do without for a while, degraded and ready.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// Deadline of a check; a slower one counts as failed.
const CHECK_DEADLINE: Duration = Duration::from_secs(2);

/// Deadline of a degrading check: short, so that a slow optional dependency does not make the readiness probe time out.
const DEGRADING_CHECK_DEADLINE: Duration = Duration::from_millis(300);

/// How long a report is cached.
const CACHE_TTL: Duration = Duration::from_millis(500);

type CheckFn = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync>;

/// A check, and its outcome on failure.
#[derive(Clone)]
struct Check {
    run: CheckFn,
    on_failure: CheckOutcome,
}

/// The readiness of a role. Clones share state.
#[derive(Clone, Default)]
pub struct Readiness {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    stopping: Arc<AtomicBool>,
    checks: RwLock<BTreeMap<String, Check>>,
    /// Last outcomes and their time. Locked while the checks run, so concurrent callers share one run.
    last: Mutex<Option<(Instant, BTreeMap<String, CheckOutcome>)>>,
}

/// Outcome of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// The check passed.
    Ok,
    /// The check failed and requests are still served; the reason is in the log.
    Degraded,
    /// The check failed and requests cannot be served; the reason is in the log.
    Failing,
}

/// Outcome of all checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadinessReport {
    /// Whether requests should be sent here.
    pub ready: bool,
    /// Outcomes by the name of the check.
    pub checks: BTreeMap<String, CheckOutcome>,
}

impl Readiness {
    /// Readiness of another role of the same process: separate checks, the same shutdown latch.
    #[must_use]
    pub fn sibling(&self) -> Self {
        let stopping = self.shared.stopping.clone();
        Self { shared: Arc::new(Shared { stopping, ..Shared::default() }) }
    }

    /// Adds a check that is required to serve requests. Its error text is logged, never sent.
    pub fn register<F, Fut>(&self, name: impl Into<String>, check: F)
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.add(name.into(), Arc::new(move || Box::pin(check())), CheckOutcome::Failing);
    }

    /// Adds a check of an optional dependency: a failure is reported as degraded, and the role stays ready.
    pub fn register_degrading<F, Fut>(&self, name: impl Into<String>, check: F)
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.add(name.into(), Arc::new(move || Box::pin(check())), CheckOutcome::Degraded);
    }

    fn add(&self, name: String, run: CheckFn, on_failure: CheckOutcome) {
        if let Ok(mut checks) = self.shared.checks.write() {
            checks.insert(name, Check { run, on_failure });
        }
    }

    /// Sets the shutdown latch: not ready from now on.
    pub fn begin_shutdown(&self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
    }

    /// Runs all checks concurrently, or returns the cached outcomes of the last half second. Shutdown is never cached.
    pub async fn report(&self) -> ReadinessReport {
        let mut last = self.shared.last.lock().await;
        let checks = match &*last {
            Some((at, checks)) if at.elapsed() < CACHE_TTL => checks.clone(),
            _ => {
                let checks = self.run_checks().await;
                *last = Some((Instant::now(), checks.clone()));
                checks
            }
        };
        let stopping = self.shared.stopping.load(Ordering::SeqCst);
        let ready = !stopping && checks.values().all(|outcome| *outcome != CheckOutcome::Failing);
        ReadinessReport { ready, checks }
    }

    async fn run_checks(&self) -> BTreeMap<String, CheckOutcome> {
        let checks: Vec<(String, Check)> = match self.shared.checks.read() {
            Ok(checks) => checks.iter().map(|(name, check)| (name.clone(), check.clone())).collect(),
            // Poisoned: a registration panicked, so the set of checks is incomplete.
            Err(_) => return BTreeMap::from([("checks".to_owned(), CheckOutcome::Failing)]),
        };
        let outcomes = checks.into_iter().map(|(name, check)| async move {
            let outcome = run_check(&name, &check).await;
            (name, outcome)
        });
        futures_util::future::join_all(outcomes).await.into_iter().collect()
    }
}

async fn run_check(name: &str, check: &Check) -> CheckOutcome {
    let deadline = match check.on_failure {
        CheckOutcome::Degraded => DEGRADING_CHECK_DEADLINE,
        CheckOutcome::Ok | CheckOutcome::Failing => CHECK_DEADLINE,
    };
    let reason = match timeout(deadline, (check.run)()).await {
        Ok(Ok(())) => return CheckOutcome::Ok,
        Ok(Err(reason)) => reason,
        Err(_) => "the check timed out".to_owned(),
    };
    let outcome = check.on_failure;
    tracing::warn!(check = name, reason, ?outcome, "readiness check failed");
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn failing_check_makes_the_role_unready() {
        let readiness = Readiness::default();
        readiness.register("database", || async { Ok(()) });
        assert!(readiness.report().await.ready);
        // Without the cached outcomes of the first report.
        let readiness = readiness.sibling();
        readiness.register("database", || async { Ok(()) });
        readiness.register("bus", || async { Err("connection refused".to_owned()) });
        let report = readiness.report().await;
        assert!(!report.ready);
        assert_eq!(report.checks["bus"], CheckOutcome::Failing);
        assert_eq!(report.checks["database"], CheckOutcome::Ok);
    }

    #[tokio::test]
    async fn degraded_check_is_reported_and_keeps_the_role_ready() {
        let readiness = Readiness::default();
        readiness.register("database", || async { Ok(()) });
        readiness.register_degrading("bus", || async { Err("connection refused".to_owned()) });
        let report = readiness.report().await;
        assert!(report.ready);
        assert_eq!(report.checks["bus"], CheckOutcome::Degraded);
        assert_eq!(report.checks["database"], CheckOutcome::Ok);
    }

    #[tokio::test(start_paused = true)]
    async fn hanging_degrading_check_does_not_delay_the_report() {
        let readiness = Readiness::default();
        readiness.register("database", || async { Ok(()) });
        readiness.register_degrading("bus", std::future::pending);
        let began = Instant::now();
        let report = readiness.report().await;
        assert!(report.ready);
        assert_eq!(report.checks["bus"], CheckOutcome::Degraded);
        assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn concurrent_reports_share_one_run_of_the_checks() {
        let runs = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let readiness = Readiness::default();
        let counted = runs.clone();
        readiness.register("database", move || {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Ok(()) }
        });
        tokio::time::pause();
        futures_util::future::join_all((0..100).map(|_| readiness.report())).await;
        assert_eq!(runs.load(Ordering::SeqCst), 1);
        tokio::time::advance(CACHE_TTL).await;
        readiness.report().await;
        assert_eq!(runs.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn siblings_have_separate_checks_and_one_shutdown_latch() {
        let one = Readiness::default();
        one.register("bus", || async { Err("connection refused".to_owned()) });
        let other = one.sibling();
        assert!(other.report().await.ready);
        one.begin_shutdown();
        assert!(!other.report().await.ready);
    }

    #[tokio::test]
    async fn shutdown_makes_the_role_unready() {
        let readiness = Readiness::default();
        readiness.begin_shutdown();
        assert!(!readiness.report().await.ready);
    }
}
