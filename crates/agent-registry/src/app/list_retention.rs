//! Lists retention periods.

use assay_contracts::ids::OrganizationId;
use assay_contracts::internal::RetentionPage;
use assay_platform::db::{Database, DatabaseError};

use crate::domain::{DefaultRetention, OrganizationName, RetentionRecord};
use crate::store::{self, Store};

/// Organizations per page.
pub const PAGE_SIZE: usize = 500;

/// A page of all organizations with their retention periods (of files only the override), by id, after `after`.
///
/// # Errors
/// When the database fails.
pub async fn page(
    store: &Store,
    defaults: DefaultRetention,
    after: Option<OrganizationId>,
) -> Result<RetentionPage, DatabaseError> {
    let records = store.page_retention(after, PAGE_SIZE).await?;
    let next = records.last().filter(|_| records.len() == PAGE_SIZE).map(|record| record.organization_id);
    let organizations = records.iter().map(|record| defaults.resolve(record)).collect();
    Ok(RetentionPage { organizations, next })
}

/// Retention overrides of one organization (an empty list when it is unknown), or of all, in the order of their names.
///
/// # Errors
/// When the database fails.
pub async fn list(
    database: &Database,
    organization: Option<OrganizationName>,
) -> Result<Vec<RetentionRecord>, DatabaseError> {
    let store = store::open(database);
    if let Some(name) = organization {
        return Ok(store.find_retention(name).await?.into_iter().collect());
    }
    let (mut records, mut after) = (Vec::new(), None);
    loop {
        let page = store.page_retention(after, PAGE_SIZE).await?;
        let is_last = page.len() < PAGE_SIZE;
        after = page.last().map(|record| record.organization_id);
        records.extend(page);
        if is_last {
            records.sort_by(|one: &RetentionRecord, other| one.organization.cmp(&other.organization));
            return Ok(records);
        }
    }
}
