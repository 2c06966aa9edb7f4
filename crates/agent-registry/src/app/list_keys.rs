//! Lists API keys.

use assay_platform::db::{Database, DatabaseError};

use crate::domain::{KeyRecord, OrganizationName};
use crate::store;

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
