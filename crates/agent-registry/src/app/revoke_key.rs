//! Revokes an API key.

use assay_contracts::ids::ApiKeyId;
use assay_platform::db::{Database, DatabaseError};
use assay_platform::runtime::now;

use crate::domain::Revocation;
use crate::store;

/// Revokes a key for good. Gateways may still know it for as long as they cache keys, 30 seconds at most.
///
/// # Errors
/// When the database fails.
pub async fn revoke(database: &Database, id: ApiKeyId) -> Result<Revocation, DatabaseError> {
    store::open(database).revoke_key(id, now()).await
}
