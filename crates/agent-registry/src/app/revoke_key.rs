//! Revokes an API key.

use assay_contracts::ids::ApiKeyId;
use assay_platform::db::{Database, DatabaseError};
use assay_platform::runtime::now;

use crate::domain::Revocation;
use crate::store;

/// Revokes a key permanently. Gateways cache keys and may accept it for up to 30 more seconds.
///
/// # Errors
/// When the database fails.
pub async fn revoke(database: &Database, id: ApiKeyId) -> Result<Revocation, DatabaseError> {
    store::open(database).revoke_key(id, now()).await
}
