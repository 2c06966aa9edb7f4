//! Comparison of the clock of this process with that of its database, which is the same for all processes of a role.
//!
//! Leases, retention periods and partitions depend on times that other processes have stored. A process whose clock is off
//! by more than five seconds does not start. A process whose clock becomes wrong later still answers requests, is
//! degraded, and pauses removals and claims of exports and webhook deliveries until the clocks agree again. Claims of events go on: an
//! event that is claimed twice is recognised by the inbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use assay_contracts::time::Timestamp;
use metrics::gauge;
use tokio::sync::SetOnce;
use tokio_util::sync::CancellationToken;

use super::clock_skew::ClockSkew;
use super::{Database, DatabaseError};
use crate::runtime::{Phase, Tasks, now};

/// Pause between two comparisons.
const INTERVAL: Duration = Duration::from_secs(30);

/// Pause until the next comparison while the database cannot be reached.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

pub(super) type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The clock of this process, compared with that of a database. Clones share state. SQLite is on the same machine: there is
/// nothing to compare.
#[derive(Clone)]
pub struct Clock {
    database: Database,
    now: Now,
    /// Whether the last comparison found a skew that is not tolerable.
    is_wrong: Arc<AtomicBool>,
    /// Set by the first comparison; from the start where there is nothing to compare.
    is_compared: Arc<SetOnce<()>>,
}

/// Compares the clocks from now on: the task fails if the first comparison finds a skew of more than five seconds, which
/// ends the process; later ones make the role degraded (the check `<name> clock`). Before the first comparison the clock is not
/// trusted; while the database cannot be reached, the result of the last comparison holds.
pub fn watch_clock(tasks: &mut Tasks, name: &'static str, database: &Database) -> Clock {
    watch_clock_by(tasks, name, database, INTERVAL, now)
}

/// [`watch_clock`] with another interval and another clock of this process, for tests.
pub fn watch_clock_by(
    tasks: &mut Tasks,
    name: &'static str,
    database: &Database,
    interval: Duration,
    now: impl Fn() -> Timestamp + Send + Sync + 'static,
) -> Clock {
    let is_compared = Arc::new(SetOnce::new_with((!database.has_server_clock()).then_some(())));
    let clock =
        Clock { database: database.clone(), now: Arc::new(now), is_wrong: Arc::default(), is_compared };
    if database.has_server_clock() {
        let checked = clock.clone();
        tasks.readiness().register_degrading(format!("{name} clock"), move || {
            let is_wrong = checked.is_wrong.load(Ordering::Relaxed);
            async move { if is_wrong { Err("the clocks differ: see the log".to_owned()) } else { Ok(()) } }
        });
        let watched = clock.clone();
        tasks.spawn(Phase::Background, format!("{name} clock"), move |stop| watched.watch(interval, stop));
    }
    clock
}

impl Clock {
    /// Whether the clocks agreed when they were last compared.
    pub fn is_trusted(&self) -> bool {
        self.is_compared.initialized() && !self.is_wrong.load(Ordering::Relaxed)
    }

    /// Waits for the first comparison, which needs the database.
    pub async fn wait_for_comparison(&self) {
        self.is_compared.wait().await;
    }

    /// Compares the clocks. To be called before maintenance, which removes what has expired.
    ///
    /// # Errors
    /// [`DatabaseError::Clock`] when they differ by more than five seconds, or the database cannot be reached.
    pub async fn verify(&self) -> Result<(), DatabaseError> {
        match self.compare().await? {
            Some(skew) if !skew.is_tolerable() => Err(skew.into()),
            Some(_) | None => Ok(()),
        }
    }

    async fn watch(self, interval: Duration, stop: CancellationToken) -> Result<(), ClockSkew> {
        let mut is_first_comparison = true;
        loop {
            let Some(compared) = stop.run_until_cancelled(self.compare()).await else { return Ok(()) };
            let pause = match compared {
                Ok(skew) => {
                    if let Some(skew) = skew.filter(|skew| !skew.is_tolerable()) {
                        if is_first_comparison {
                            return Err(skew);
                        }
                        tracing::error!(cause = %skew, "leases and the removal of expired records pause");
                    }
                    is_first_comparison = false;
                    interval
                }
                Err(error) => {
                    tracing::debug!(cause = %error, "the clocks cannot be compared: trying again");
                    RETRY_PAUSE
                }
            };
            if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return Ok(());
            }
        }
    }

    async fn compare(&self) -> Result<Option<ClockSkew>, DatabaseError> {
        let Some(skew) = self.database.measure_clock(self.now.clone()).await? else { return Ok(None) };
        gauge!("assay_clock_skew_seconds", "database" => self.database.name())
            .set(skew.millis() as f64 / 1_000.0);
        let was_wrong = self.is_wrong.swap(!skew.is_tolerable(), Ordering::Relaxed);
        // Fails when it is set already.
        let _ = self.is_compared.set(());
        if was_wrong && skew.is_tolerable() {
            tracing::info!("the clock of this process agrees with the database's again");
        } else if !skew.is_negligible() {
            tracing::warn!("{skew}");
        }
        Ok(Some(skew))
    }
}
