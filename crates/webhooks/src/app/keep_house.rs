//! Removes what is kept no longer, and encrypts secrets anew when the signing key was rotated.

use assay_platform::auth::{SigningKeys, UnreadableSecret};
use assay_platform::db::DatabaseError;
use assay_platform::runtime::now;

use crate::domain::secret::SealedSecrets;
use crate::store::WebhookStore;
use assay_contracts::ids::WebhookId;

/// Endpoints looked at by one call.
const PAGE: u32 = 200;

/// One round of housekeeping; safe in several processes at once.
///
/// # Errors
/// When the database fails; the next round goes on.
pub(crate) async fn keep_house(store: &dyn WebhookStore, retention_millis: i64) -> Result<(), DatabaseError> {
    let now = now();
    let before = now.plus_millis(-retention_millis);
    while store.prune(before, now).await? > 0 {}
    Ok(())
}

/// Encrypts anew what is not encrypted under the first signing key, so that older keys can be taken away.
///
/// # Errors
/// When the database fails; the next round goes on.
pub(crate) async fn reseal_secrets(
    store: &dyn WebhookStore,
    keys: &SigningKeys,
) -> Result<(), DatabaseError> {
    let mut after = None;
    loop {
        let page = store.secrets(after, PAGE).await?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = Some(*last);
        for (id, secrets) in page.into_iter().filter(|(_, secrets)| !is_current(secrets, keys)) {
            match resealed(&secrets, keys, id) {
                Ok(anew) => store.reseal(id, secrets, anew).await?,
                Err(error) => {
                    tracing::error!(webhook = %id, cause = %error, "secret of a webhook cannot be read: rotate it");
                }
            }
        }
    }
}

fn is_current(secrets: &SealedSecrets, keys: &SigningKeys) -> bool {
    secrets.current.is_current(keys)
        && secrets.previous.as_ref().is_none_or(|(previous, _)| previous.is_current(keys))
}

fn resealed(
    secrets: &SealedSecrets,
    keys: &SigningKeys,
    id: WebhookId,
) -> Result<SealedSecrets, UnreadableSecret> {
    let current = secrets.current.open(keys, id)?.seal(keys, id)?;
    let previous = match &secrets.previous {
        Some((previous, until)) => Some((previous.open(keys, id)?.seal(keys, id)?, *until)),
        None => None,
    };
    Ok(SealedSecrets { current, previous })
}
