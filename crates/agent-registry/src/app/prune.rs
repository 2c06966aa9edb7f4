//! Removes what is kept for a day only.

use std::sync::Arc;
use std::time::Duration;

use assay_platform::db::idempotency::PRUNE_BATCH;
use assay_platform::runtime::{BoxError, now, within};
use tokio_util::sync::CancellationToken;

use crate::store::Store;

const INTERVAL: Duration = Duration::from_secs(3_600);

/// Removes expired idempotency records now and every hour, until `stop`.
///
/// # Errors
/// None; a failure is logged and the next round tries again.
pub async fn prune_hourly(store: Arc<dyn Store>, stop: CancellationToken) -> Result<(), BoxError> {
    loop {
        prune(store.as_ref(), &stop).await;
        if within(INTERVAL, stop.cancelled()).await.is_some() {
            return Ok(());
        }
    }
}

async fn prune(store: &dyn Store, stop: &CancellationToken) {
    while !stop.is_cancelled() {
        match store.prune(now()).await {
            Ok(removed) if removed < PRUNE_BATCH => return,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(cause = %error, "expired idempotency records stay for another hour");
                return;
            }
        }
    }
}
