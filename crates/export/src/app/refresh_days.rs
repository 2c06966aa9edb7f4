//! Refreshes the columns of stale days.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use assay_contracts::time::Timestamp;
use assay_platform::db::DatabaseError;

use crate::store::{EvaluationStore, StaleDay};

/// A day is refreshed at most once in this time: until then readers use its rows.
const MIN_INTERVAL_MILLIS: i64 = 10_000;

/// A run ends after this time, so that refreshing many days leaves the processors to other tasks.
const BUDGET: Duration = Duration::from_millis(50);

/// Pause before the next attempt at a day that failed: an attempt may use up the deadline of a call, while other days wait.
const RETRY_DELAY_MILLIS: i64 = 60_000;

/// Maximum number of failed days; with more, the cause is not in the days, and the run fails.
const MAX_FAILED: usize = 100;

/// Days whose refresh failed, each with the time of its next attempt.
#[derive(Debug, Default)]
pub(crate) struct FailedDays(BTreeMap<StaleDay, Timestamp>);

/// Refreshes stale days until none is due or `BUDGET` is used up. Safe to run in several processes at once. A day that fails is logged
/// and does not prevent the refresh of others.
pub(crate) async fn refresh_days(
    store: &EvaluationStore,
    failed: &mut FailedDays,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let began = Instant::now();
    failed.0.retain(|_, due| *due > now);
    while began.elapsed() < BUDGET {
        let except = failed.0.keys().copied().collect();
        let Some(stale_day) = store.next_stale_day(now.plus_millis(-MIN_INTERVAL_MILLIS), except).await?
        else {
            break;
        };
        if let Err(error) = store.refresh_day(stale_day, now).await {
            if failed.0.len() >= MAX_FAILED {
                return Err(error);
            }
            let StaleDay { organization_id, day } = stale_day;
            tracing::warn!(%organization_id, day, cause = %error, "a day of evaluations cannot be put into columns");
            failed.0.insert(stale_day, now.plus_millis(RETRY_DELAY_MILLIS));
        }
    }
    Ok(())
}
