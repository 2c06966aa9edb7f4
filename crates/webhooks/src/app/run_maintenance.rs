//! Removes expired records, and re-encrypts secrets after a rotation of the signing key.

use assay_contracts::ids::WebhookId;
use assay_platform::auth::{KeyRing, SecretEncryptionError};
use assay_platform::db::DatabaseError;
use assay_platform::runtime::now;

use crate::domain::secret::SealedSecrets;
use crate::store::WebhookStore;

/// Endpoints per page.
const PAGE_SIZE: u32 = 200;

/// One maintenance round; safe in several processes at once.
///
/// # Errors
/// When the database fails; the next round continues.
pub(crate) async fn run_maintenance(
    store: &WebhookStore,
    keys: &KeyRing,
    retention_millis: i64,
) -> Result<(), DatabaseError> {
    reseal_secrets(store, keys).await?;
    let now = now();
    // `cutoff` applies to messages; `now` to previous secrets, retractions, inbox and recorded responses.
    let cutoff = now.plus_millis(-retention_millis);
    while store.prune(cutoff, now).await? > 0 {}
    Ok(())
}

/// Re-encrypts secrets that are not encrypted with the first signing key, so that older keys can be removed.
async fn reseal_secrets(store: &WebhookStore, keys: &KeyRing) -> Result<(), DatabaseError> {
    let mut after = None;
    loop {
        let page = store.all_secrets(after, PAGE_SIZE).await?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = Some(*last);
        for (id, secrets) in page.into_iter().filter(|(_, secrets)| !all_use_first_key(secrets, keys)) {
            match reseal(&secrets, keys, id) {
                Ok(resealed) => store.reseal(id, secrets, resealed).await?,
                Err(error) => {
                    tracing::error!(webhook = %id, cause = %error, "secret of a webhook cannot be read: rotate it");
                }
            }
        }
    }
}

fn all_use_first_key(secrets: &SealedSecrets, keys: &KeyRing) -> bool {
    secrets.current.uses_first_key(keys)
        && secrets.previous.as_ref().is_none_or(|(previous, _)| previous.uses_first_key(keys))
}

fn reseal(
    secrets: &SealedSecrets,
    keys: &KeyRing,
    id: WebhookId,
) -> Result<SealedSecrets, SecretEncryptionError> {
    let current = secrets.current.open(keys, id)?.seal(keys, id)?;
    let previous = match &secrets.previous {
        Some((previous, until)) => Some((previous.open(keys, id)?.seal(keys, id)?, *until)),
        None => None,
    };
    Ok(SealedSecrets { current, previous })
}
