//! Sets the retention overrides of an organization.

use assay_platform::db::{Database, DatabaseError};

use crate::domain::{OrganizationName, RetentionChange, RetentionRecord};
use crate::store;

/// Changes the overrides of an organization and returns them; `None` when the organization does not exist.
///
/// # Errors
/// When the database fails.
pub async fn set(
    database: &Database,
    organization: OrganizationName,
    change: RetentionChange,
) -> Result<Option<RetentionRecord>, DatabaseError> {
    store::open(database).set_retention(organization, change).await
}
