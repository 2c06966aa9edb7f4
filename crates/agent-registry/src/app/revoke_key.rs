//! Revokes an API key.

use assay_contracts::ids::ApiKeyId;
use assay_platform::db::{Database, DatabaseError};
use assay_platform::runtime::now;

use crate::domain::Revocation;
use crate::store;

/// Revokes a key permanently. Gateways cache keys: they may accept it for 30 more seconds, or 60 while agent-registry does
/// not answer.
///
/// # Errors
/// When the database fails.
pub async fn revoke(database: &Database, id: ApiKeyId) -> Result<Revocation, DatabaseError> {
    store::open(database).revoke_key(id, None, now()).await
}
