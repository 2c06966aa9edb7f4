//! Readiness tells the truth: a set of named checks, all of which must hold, and a latch for shutdown.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::time::timeout;

/// A check that takes longer counts as failed.
const CHECK_DEADLINE: Duration = Duration::from_secs(2);

type Check = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync>;

/// The readiness of a role. Cloned freely; all clones are one.
#[derive(Clone, Default)]
pub struct Readiness {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    stopping: Arc<AtomicBool>,
    checks: RwLock<BTreeMap<String, Check>>,
}

/// What one check said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// It holds.
    Ok,
    /// It does not; the reason is in the log.
    Failing,
}

/// What all checks said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadinessReport {
    /// Whether requests should be sent here.
    pub ready: bool,
    /// By name.
    pub checks: BTreeMap<String, CheckOutcome>,
}

impl Readiness {
    /// Another role of the same process: checks of its own, and the same latch for shutdown.
    #[must_use]
    pub fn sibling(&self) -> Self {
        let stopping = self.shared.stopping.clone();
        Self { shared: Arc::new(Shared { stopping, checks: RwLock::default() }) }
    }

    /// Adds a check. Its error text is logged, never answered.
    pub fn register<F, Fut>(&self, name: impl Into<String>, check: F)
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        let check: Check = Arc::new(move || Box::pin(check()));
        if let Ok(mut checks) = self.shared.checks.write() {
            checks.insert(name.into(), check);
        }
    }

    /// From now on not ready, whatever the checks say.
    pub fn begin_shutdown(&self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
    }

    /// Runs every check, at the same time.
    pub async fn report(&self) -> ReadinessReport {
        let stopping = self.shared.stopping.load(Ordering::SeqCst);
        let checks: Vec<(String, Check)> = match self.shared.checks.read() {
            Ok(checks) => checks.iter().map(|(name, check)| (name.clone(), check.clone())).collect(),
            Err(_) => return ReadinessReport { ready: false, checks: BTreeMap::new() },
        };
        let outcomes = futures_util::future::join_all(checks.into_iter().map(|(name, check)| async move {
            let outcome = match timeout(CHECK_DEADLINE, check()).await {
                Ok(Ok(())) => CheckOutcome::Ok,
                Ok(Err(reason)) => {
                    tracing::warn!(check = name, reason, "not ready");
                    CheckOutcome::Failing
                }
                Err(_) => {
                    tracing::warn!(check = name, "not ready: the check did not answer in time");
                    CheckOutcome::Failing
                }
            };
            (name, outcome)
        }));
        let checks: BTreeMap<String, CheckOutcome> = outcomes.await.into_iter().collect();
        let ready = !stopping && checks.values().all(|outcome| *outcome == CheckOutcome::Ok);
        ReadinessReport { ready, checks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_failing_check_makes_the_process_unready() {
        let readiness = Readiness::default();
        readiness.register("database", || async { Ok(()) });
        assert!(readiness.report().await.ready);
        readiness.register("bus", || async { Err("connection refused".to_owned()) });
        let report = readiness.report().await;
        assert!(!report.ready);
        assert_eq!(report.checks["bus"], CheckOutcome::Failing);
        assert_eq!(report.checks["database"], CheckOutcome::Ok);
    }

    #[tokio::test]
    async fn roles_of_one_process_have_checks_of_their_own_and_stop_together() {
        let one = Readiness::default();
        one.register("bus", || async { Err("connection refused".to_owned()) });
        let other = one.sibling();
        assert!(other.report().await.ready);
        one.begin_shutdown();
        assert!(!other.report().await.ready);
    }

    #[tokio::test]
    async fn a_process_that_shuts_down_is_not_ready() {
        let readiness = Readiness::default();
        readiness.begin_shutdown();
        assert!(!readiness.report().await.ready);
    }
}
