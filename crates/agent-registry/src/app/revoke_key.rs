//! Revokes an API key.

use assay_contracts::ids::{ApiKeyId, OrganizationId};
use assay_platform::db::{Database, DatabaseError};
use assay_platform::runtime::now;

use crate::domain::Revocation;
use crate::store::{self, Store};

/// Revokes a key permanently. Gateways cache keys: they may accept it for 30 more seconds, or 60 while agent-registry does
/// not answer.
///
/// # Errors
/// When the database fails.
pub async fn revoke(database: &Database, id: ApiKeyId) -> Result<Revocation, DatabaseError> {
    store::open(database).revoke_key(id, None, now()).await
}

/// Revokes a key of one organization, as [`revoke`] does; keys of other organizations are unknown.
///
/// # Errors
/// When the database fails.
pub async fn revoke_in_organization(
    store: &Store,
    organization_id: OrganizationId,
    id: ApiKeyId,
) -> Result<Revocation, DatabaseError> {
    store.revoke_key(id, Some(organization_id), now()).await
}
