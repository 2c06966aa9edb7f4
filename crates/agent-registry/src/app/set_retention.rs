//! Sets how long an organization keeps things.

use assay_platform::db::{Database, DatabaseError};

use crate::domain::{OrganizationName, RetentionChange, RetentionRecord};
use crate::store;

/// Changes the periods of an organization, and answers what they are then; `None` when there is no such organization.
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
