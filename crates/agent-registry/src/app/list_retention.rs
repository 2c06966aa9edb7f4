//! How long each organization keeps things.

use assay_contracts::ids::OrganizationId;
use assay_contracts::internal::RetentionPage;
use assay_platform::db::{Database, DatabaseError};

use crate::domain::{DefaultPeriods, OrganizationName, RetentionRecord};
use crate::store::{self, Store};

/// Organizations on a page.
pub const PAGE: usize = 500;

/// A page of all organizations with the periods that hold for them, by id, from behind `after` on.
///
/// # Errors
/// When the database fails.
pub async fn page(
    store: &dyn Store,
    defaults: DefaultPeriods,
    after: Option<OrganizationId>,
) -> Result<RetentionPage, DatabaseError> {
    let records = store.page_retention(after, PAGE).await?;
    let next = records.last().filter(|_| records.len() == PAGE).map(|record| record.organization_id);
    let organizations = records.iter().map(|record| defaults.resolve(record)).collect();
    Ok(RetentionPage { organizations, next })
}

/// All organizations with their own periods, or the one of this name; by name.
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
        let page = store.page_retention(after, PAGE).await?;
        let is_last = page.len() < PAGE;
        after = page.last().map(|record| record.organization_id);
        records.extend(page);
        if is_last {
            records.sort_by(|one: &RetentionRecord, other| one.organization.cmp(&other.organization));
            return Ok(records);
        }
    }
}
