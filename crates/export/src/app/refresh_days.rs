//! Puts the days that changed into columns.

use std::time::{Duration, Instant};

use assay_contracts::time::Timestamp;
use assay_platform::db::DatabaseError;

use crate::store::EvaluationStore;

/// A day is made at most once in this time: until then its readers read rows.
const INTERVAL_MILLIS: i64 = 10_000;

/// A run ends after this time, so that imports of many days leave the processors to others.
const BUDGET: Duration = Duration::from_millis(50);

/// Safe to run in several processes at once.
pub(crate) async fn refresh_days(store: &dyn EvaluationStore, now: Timestamp) -> Result<(), DatabaseError> {
    let began = Instant::now();
    while store.refresh_day(now.plus_millis(-INTERVAL_MILLIS), now).await? && began.elapsed() < BUDGET {}
    Ok(())
}
