//! Lists API keys.

use assay_contracts::ids::{ApiKeyId, OrganizationId};
use assay_platform::db::{Database, DatabaseError};

use crate::domain::{KeyRecord, OrganizationName};
use crate::store::{self, Store};

/// The keys of one organization or of all, newest first, at most [`store::MAX_LISTED_KEYS`].
///
/// # Errors
/// When the database fails.
pub async fn list(
    database: &Database,
    organization: Option<OrganizationName>,
) -> Result<Vec<KeyRecord>, DatabaseError> {
    store::open(database).list_keys(organization).await
}

/// The keys of one organization, newest first, at most [`store::MAX_LISTED_KEYS`]; with `before` those created before this key.
///
/// # Errors
/// When the database fails.
pub async fn list_in_organization(
    store: &Store,
    organization_id: OrganizationId,
    before: Option<ApiKeyId>,
) -> Result<Vec<KeyRecord>, DatabaseError> {
    store.list_organization_keys(organization_id, before).await
}
