//! The key that an installation starts with, so that its first request needs no command line.

use std::time::Duration;

use assay_contracts::tenant::Scopes;
use assay_platform::auth::ApiKey;
use assay_platform::db::{Database, DatabaseError};
use assay_platform::runtime::{BoxError, new_id, now, within};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::domain::{KeyName, OrganizationName};
use crate::store::{self, KeyStored, KeyToStore};

/// Between two attempts while the database is away.
const RETRY: Duration = Duration::from_secs(1);

/// Makes sure that `key` is known: when it is not, it is stored for `organization`, which is created when needed.
/// A key that is known stays as it is, also when it was revoked or belongs to another organization. Safe to be called
/// by several processes at once.
///
/// # Errors
/// When the database fails.
pub async fn bootstrap(
    database: &Database,
    key: &ApiKey,
    organization: OrganizationName,
) -> Result<(), DatabaseError> {
    let record = KeyToStore {
        id: new_id(),
        hash: key.hash(),
        organization,
        new_organization_id: new_id(),
        name: KeyName::bootstrap(),
        scopes: Scopes::default_for_keys(),
        expires_at: None,
        created_at: now(),
    };
    let organization = record.organization.to_string();
    if store::open(database).create_key(record).await? == KeyStored::Created {
        tracing::info!(organization, "created the bootstrap API key");
    }
    Ok(())
}

/// [`bootstrap`] as a task: tries until it succeeds, says so through `done`, and stays until `stop`.
///
/// # Errors
/// None; while the database is away the service is not ready.
pub async fn bootstrap_until_done(
    database: Database,
    key: ApiKey,
    organization: OrganizationName,
    done: watch::Sender<bool>,
    stop: CancellationToken,
) -> Result<(), BoxError> {
    while let Err(error) = bootstrap(&database, &key, organization.clone()).await {
        tracing::warn!(cause = %error, "the bootstrap API key is not stored yet: trying again");
        if within(RETRY, stop.cancelled()).await.is_some() {
            return Ok(());
        }
    }
    done.send_replace(true);
    stop.cancelled().await;
    Ok(())
}
