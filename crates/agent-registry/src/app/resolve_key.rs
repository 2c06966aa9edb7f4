//! Resolves an API key to its organization and scopes.

use assay_contracts::internal::KeyGrant;
use assay_platform::auth::ApiKeyHash;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::now;

use super::record_key_use::KeyUses;
use crate::store::Store;

/// The organization and scopes of a key; `None` when it is unknown, expired or revoked, which look the same to the caller.
///
/// # Errors
/// When the database fails.
pub async fn resolve_key(
    store: &Store,
    uses: &KeyUses,
    hash: ApiKeyHash,
) -> Result<Option<KeyGrant>, DatabaseError> {
    let now = now();
    let Some(key) = store.find_active_key(hash, now).await? else { return Ok(None) };
    if key.should_record_use(now) {
        uses.push(key.id, now);
    }
    Ok(Some(KeyGrant { key_id: key.id, organization_id: key.organization_id, scopes: key.scopes }))
}
