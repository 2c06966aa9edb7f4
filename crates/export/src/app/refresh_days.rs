//! Puts the days that changed into columns.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use assay_contracts::time::Timestamp;
use assay_platform::db::DatabaseError;

use crate::store::{EvaluationStore, MarkedDay};

/// A day is made at most once in this time: until then its readers read rows.
const INTERVAL_MILLIS: i64 = 10_000;

/// A run ends after this time, so that imports of many days leave the processors to others.
const BUDGET: Duration = Duration::from_millis(50);

/// A day that failed is left alone for this long: it may have cost all the time of a call, and the others wait.
const PAUSE_MILLIS: i64 = 60_000;

/// Beyond this number the days are not what fails.
const MAX_FAILED: usize = 100;

/// The days that could not be made, each with the time of its next attempt.
#[derive(Debug, Default)]
pub(crate) struct FailedDays(BTreeMap<MarkedDay, Timestamp>);

/// Safe to run in several processes at once. A day that fails is logged and does not keep the others from being made.
pub(crate) async fn refresh_days(
    store: &dyn EvaluationStore,
    failed: &mut FailedDays,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let began = Instant::now();
    failed.0.retain(|_, due| *due > now);
    while began.elapsed() < BUDGET {
        let except = failed.0.keys().copied().collect();
        let Some(marked) = store.next_marked_day(now.plus_millis(-INTERVAL_MILLIS), except).await? else {
            break;
        };
        if let Err(error) = store.refresh_day(marked, now).await {
            if failed.0.len() >= MAX_FAILED {
                return Err(error);
            }
            let MarkedDay { organization_id, day } = marked;
            tracing::warn!(%organization_id, day, cause = %error, "a day of evaluations cannot be put into columns");
            failed.0.insert(marked, now.plus_millis(PAUSE_MILLIS));
        }
    }
    Ok(())
}
