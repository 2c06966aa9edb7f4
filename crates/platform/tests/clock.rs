//! Comparison of the clock of a process with that of its database.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use assay_contracts::time::Timestamp;
use assay_platform::db::{Clock, DatabaseError, Migrations, watch_clock_by};
use assay_platform::runtime::{CheckOutcome, Readiness, ShutdownBudgets, TaskFailure, Tasks, now, timeout};
use assay_testkit::{ServiceDatabase, eventually};

/// The schema of any service will do: test databases know only the database users of services.
const SCHEMA: &str = "export";
static NO_MIGRATIONS: [Migrations; 0] = [];
/// Time for an expected failure.
const DEADLINE: Duration = Duration::from_secs(30);
/// Time for many comparisons, none of which fails.
const MANY_INTERVALS: Duration = Duration::from_secs(3);
const BUDGETS: ShutdownBudgets = ShutdownBudgets { per_phase: Duration::from_secs(1), drain: Duration::ZERO };

/// A clock of a process that is ahead of this machine's.
#[derive(Default)]
struct SkewedClock {
    ahead_millis: AtomicI64,
    reads: AtomicUsize,
}

impl SkewedClock {
    fn by(millis: i64) -> Arc<Self> {
        Arc::new(Self { ahead_millis: millis.into(), ..Self::default() })
    }

    fn now(&self) -> Timestamp {
        self.reads.fetch_add(1, Ordering::SeqCst);
        now().plus_millis(self.ahead_millis.load(Ordering::SeqCst))
    }
}

/// Starts a process whose clock is ahead of this machine's.
fn start(database: &ServiceDatabase, skewed: &Arc<SkewedClock>) -> Result<(Tasks, Clock)> {
    let mut tasks = Tasks::new(Readiness::default());
    let skewed = skewed.clone();
    let database = database.open(SCHEMA)?;
    let interval = Duration::from_millis(20);
    let clock = watch_clock_by(&mut tasks, SCHEMA, &database, interval, move || skewed.now());
    Ok((tasks, clock))
}

/// Runs until a task fails, for at most `limit`.
async fn failure(tasks: Tasks, limit: Duration) -> Option<TaskFailure> {
    let stop = std::future::pending();
    timeout(limit, tasks.run(stop, BUDGETS)).await.and_then(Result::err)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_with_a_wrong_clock_does_not_start() -> Result<()> {
    let database = ServiceDatabase::postgres(SCHEMA, &NO_MIGRATIONS).await?;
    for (millis, direction) in [(6_000, "ahead of"), (-3_600_000, "behind")] {
        let (tasks, _clock) = start(&database, &SkewedClock::by(millis))?;
        let failure = failure(tasks, DEADLINE).await.context("it started")?.to_string();
        assert!(failure.contains(direction) && failure.contains("synchronise"), "{failure}");
        assert_eq!(failure.matches("Z)").count(), 2, "both times are named: {failure}");
    }
    let (tasks, clock) = start(&database, &SkewedClock::by(3_000))?;
    assert!(failure(tasks, MANY_INTERVALS).await.is_none(), "three seconds are only warned of");
    assert!(clock.is_trusted());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_on_stored_times_pauses_while_the_clock_is_wrong() -> Result<()> {
    let database = ServiceDatabase::postgres(SCHEMA, &NO_MIGRATIONS).await?;
    let skewed = SkewedClock::by(0);
    let (tasks, clock) = start(&database, &skewed)?;
    let readiness = tasks.readiness().clone();
    let stepped = async {
        // The first comparison decides whether the process starts.
        eventually("a second comparison", || async { Ok(skewed.reads.load(Ordering::SeqCst) > 1) }).await?;
        skewed.ahead_millis.store(-600_000, Ordering::SeqCst);
        eventually("the step to be noticed", || async { Ok(!clock.is_trusted()) }).await?;
        let refused = clock.verify().await;
        assert!(matches!(refused, Err(DatabaseError::Clock(_))), "{refused:?}");
        eventually("the role to be degraded", || async {
            let report = readiness.report().await;
            Ok(report.ready && report.checks["export clock"] == CheckOutcome::Degraded)
        })
        .await?;
        skewed.ahead_millis.store(0, Ordering::SeqCst);
        eventually("the repair to be noticed", || async { Ok(clock.is_trusted()) }).await?;
        Ok(clock.verify().await?)
    };
    tokio::select! {
        ended = tasks.run(std::future::pending(), BUDGETS) => anyhow::bail!("the process ended: {ended:?}"),
        stepped = stepped => stepped,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clock_is_not_compared_with_sqlite() -> Result<()> {
    let database = ServiceDatabase::empty_sqlite(SCHEMA)?;
    let (tasks, clock) = start(&database, &SkewedClock::by(-3_600_000))?;
    clock.verify().await?;
    assert!(clock.is_trusted(), "SQLite is on the same machine");
    assert!(failure(tasks, MANY_INTERVALS).await.is_none());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_waits_for_a_database_that_is_down() -> Result<()> {
    let mut settings = ServiceDatabase::empty_sqlite(SCHEMA)?.settings();
    settings.database_url = "postgres://nobody@127.0.0.1:1/nothing".to_owned().into();
    let mut tasks = Tasks::new(Readiness::default());
    let unreachable = assay_platform::db::Database::open(&settings, SCHEMA)?;
    let clock = watch_clock_by(&mut tasks, SCHEMA, &unreachable, Duration::from_millis(20), now);
    assert!(failure(tasks, MANY_INTERVALS).await.is_none());
    assert!(!clock.is_trusted() && clock.verify().await.is_err(), "nothing was compared yet");
    Ok(())
}
