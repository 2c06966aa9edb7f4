//! Readiness tells the truth: a set of named checks, and a latch for shutdown.
//!
//! A check either decides whether requests should be sent here, or only shows that something this role can do without
//! for a while is away: it is degraded then, and ready.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// A check that takes longer counts as failed.
const CHECK_DEADLINE: Duration = Duration::from_secs(2);

/// The same for a check that takes nobody out of service: whoever asks for readiness must not wait for what it can do
/// without, and be taken for unready by someone with a deadline of its own.
const DEGRADING_CHECK_DEADLINE: Duration = Duration::from_millis(300);

/// How long the outcome of the checks is remembered.
const MEMORY: Duration = Duration::from_millis(500);

type Question = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync>;

/// A question, and what it means when it is not answered with yes.
#[derive(Clone)]
struct Check {
    question: Question,
    otherwise: CheckOutcome,
}

/// The readiness of a role. Cloned freely; all clones are one.
#[derive(Clone, Default)]
pub struct Readiness {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    stopping: Arc<AtomicBool>,
    checks: RwLock<BTreeMap<String, Check>>,
    /// What the checks said last, and when. Whoever asks meanwhile waits for the answer.
    last: Mutex<Option<(Instant, BTreeMap<String, CheckOutcome>)>>,
}

/// What one check said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// It holds.
    Ok,
    /// It does not, and requests are answered all the same; the reason is in the log.
    Degraded,
    /// It does not, and requests cannot be answered; the reason is in the log.
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
        Self { shared: Arc::new(Shared { stopping, ..Shared::default() }) }
    }

    /// Adds a check without which no request can be answered. Its error text is logged, never answered.
    pub fn register<F, Fut>(&self, name: impl Into<String>, check: F)
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.add(name.into(), Arc::new(move || Box::pin(check())), CheckOutcome::Failing);
    }

    /// Adds a check of something that can be away for a while: it is shown, and takes nobody out of service.
    pub fn register_degrading<F, Fut>(&self, name: impl Into<String>, check: F)
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.add(name.into(), Arc::new(move || Box::pin(check())), CheckOutcome::Degraded);
    }

    fn add(&self, name: String, question: Question, otherwise: CheckOutcome) {
        if let Ok(mut checks) = self.shared.checks.write() {
            checks.insert(name, Check { question, otherwise });
        }
    }

    /// From now on not ready, whatever the checks say.
    pub fn begin_shutdown(&self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
    }

    /// Runs every check, at the same time. What they say is remembered for a moment, so that many askers cost no more than
    /// one; shutdown is told at once.
    pub async fn report(&self) -> ReadinessReport {
        let mut last = self.shared.last.lock().await;
        let checks = match last.take() {
            Some((at, checks)) if at.elapsed() < MEMORY => {
                *last = Some((at, checks.clone()));
                checks
            }
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
            // A registration panicked: nothing that follows can be trusted.
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
    let deadline = match check.otherwise {
        CheckOutcome::Degraded => DEGRADING_CHECK_DEADLINE,
        CheckOutcome::Ok | CheckOutcome::Failing => CHECK_DEADLINE,
    };
    let reason = match timeout(deadline, (check.question)()).await {
        Ok(Ok(())) => return CheckOutcome::Ok,
        Ok(Err(reason)) => reason,
        Err(_) => "the check did not answer in time".to_owned(),
    };
    let outcome = check.otherwise;
    tracing::warn!(check = name, reason, ?outcome, "a check of readiness does not hold");
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_failing_check_makes_the_process_unready() {
        let readiness = Readiness::default();
        readiness.register("database", || async { Ok(()) });
        assert!(readiness.report().await.ready);
        let readiness = readiness.sibling();
        readiness.register("database", || async { Ok(()) });
        readiness.register("bus", || async { Err("connection refused".to_owned()) });
        let report = readiness.report().await;
        assert!(!report.ready);
        assert_eq!(report.checks["bus"], CheckOutcome::Failing);
        assert_eq!(report.checks["database"], CheckOutcome::Ok);
    }

    #[tokio::test]
    async fn what_can_be_done_without_for_a_while_is_shown_and_takes_nobody_out_of_service() {
        let readiness = Readiness::default();
        readiness.register("database", || async { Ok(()) });
        readiness.register_degrading("bus", || async { Err("connection refused".to_owned()) });
        let report = readiness.report().await;
        assert!(report.ready);
        assert_eq!(report.checks["bus"], CheckOutcome::Degraded);
        assert_eq!(report.checks["database"], CheckOutcome::Ok);
    }

    #[tokio::test(start_paused = true)]
    async fn what_can_be_done_without_does_not_hold_up_the_answer() {
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
    async fn many_askers_cost_no_more_than_one_for_a_moment() {
        let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let readiness = Readiness::default();
        let counted = asked.clone();
        readiness.register("database", move || {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Ok(()) }
        });
        tokio::time::pause();
        futures_util::future::join_all((0..100).map(|_| readiness.report())).await;
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        tokio::time::advance(MEMORY).await;
        readiness.report().await;
        assert_eq!(asked.load(Ordering::SeqCst), 2);
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
