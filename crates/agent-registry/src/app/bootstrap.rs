//! The bootstrap API key of an installation, from its settings: the first key need not be created on the command line.

use std::time::Duration;

use assay_contracts::tenant::Scopes;
use assay_platform::auth::ApiKey;
use assay_platform::db::{Database, DatabaseError};
use assay_platform::runtime::{new_id, now, timeout};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::domain::{KeyName, OrganizationName};
use crate::store::{self, KeyOwner, KeyToStore, StoreKeyOutcome};

/// Pause between attempts while the database is unavailable.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Stores `key` for `organization`, which is created when needed. An existing key is not changed, even when it was revoked or
/// belongs to another organization. Safe in several processes at once.
///
/// # Errors
/// When the database fails.
pub async fn bootstrap(
    database: &Database,
    key: &ApiKey,
    organization: OrganizationName,
) -> Result<(), DatabaseError> {
    let name = organization.to_string();
    let record = KeyToStore {
        id: new_id(),
        hash: key.hash(),
        owner: KeyOwner::Named { name: organization, new_id: new_id() },
        name: KeyName::bootstrap(),
        scopes: Scopes::default_for_keys(),
        expires_at: None,
        created_at: now(),
    };
    if store::open(database).create_key(record).await? == StoreKeyOutcome::Created {
        tracing::info!(organization = name, "created the bootstrap API key");
    }
    Ok(())
}

/// [`bootstrap`] as a task: retries until it succeeds, sets `done`, and then waits for `stop`, because a task that ends early
/// ends the process. While the database is unavailable the service is not ready.
pub async fn bootstrap_until_done(
    database: Database,
    key: ApiKey,
    organization: OrganizationName,
    done: watch::Sender<bool>,
    stop: CancellationToken,
) {
    while let Err(error) = bootstrap(&database, &key, organization.clone()).await {
        tracing::warn!(cause = %error, "the bootstrap API key is not stored yet: trying again");
        let is_stopped = timeout(RETRY_PAUSE, stop.cancelled()).await.is_some();
        if is_stopped {
            return;
        }
    }
    done.send_replace(true);
    stop.cancelled().await;
}
