//! Leases of claimed rows, in the outbox and of parked events.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use assay_platform::db::DatabaseError;
use tokio::time::sleep;

/// How long a claim lasts unless it is renewed. The rows of a crashed process are blocked until then.
pub(crate) const LEASE_MILLIS: i64 = 10_000;

/// Finishes `work`, and renews its lease meanwhile. `warning` is logged when that fails.
pub(crate) async fn under_lease<T, R: Future<Output = Result<(), DatabaseError>>>(
    work: impl Future<Output = T>,
    renew: impl Fn() -> R,
    warning: &str,
) -> T {
    let interval = Duration::from_millis(LEASE_MILLIS.unsigned_abs() / 3);
    let mut work = pin!(work);
    loop {
        tokio::select! {
            result = &mut work => return result,
            () = sleep(interval) => {
                if let Err(error) = renew().await {
                    tracing::warn!(%error, "{warning}");
                }
            }
        }
    }
}
