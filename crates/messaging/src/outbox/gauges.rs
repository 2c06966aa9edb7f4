//! The gauges of an outbox.

use std::time::Duration;

use assay_platform::db::DatabaseError;
use assay_platform::runtime::{now, periodically};
use assay_platform::telemetry::metrics as telemetry;
use tokio_util::sync::CancellationToken;

use super::Outbox;
use crate::metrics;

const INTERVAL: Duration = Duration::from_secs(10);

/// Updates the gauges until `stop`.
pub(super) async fn update_gauges(outbox: Outbox, stop: CancellationToken) {
    if telemetry::is_on() {
        periodically("outbox metrics", INTERVAL, stop, || update(&outbox)).await;
    }
}

async fn update(outbox: &Outbox) -> Result<(), DatabaseError> {
    let status = outbox.status().await?;
    let oldest_millis = status.oldest_pending.map_or(0, |oldest| now().millis_since(oldest).max(0));
    metrics::set_outbox(outbox.database.name(), status.pending, status.dead, oldest_millis);
    Ok(())
}
