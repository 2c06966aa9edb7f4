//! Lists exports: specification, "GET /v1/evaluations/exports".

use assay_contracts::export::Export;
use assay_contracts::ids::OrganizationId;
use assay_contracts::page::{Page, PageInfo};
use assay_platform::auth::SigningKeys;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::now;

use crate::domain::position::{InvalidCursor, Position};
use crate::domain::view::PublicBaseUrl;
use crate::store::ExportStore;

pub(crate) struct ListExports {
    pub(crate) organization_id: OrganizationId,
    /// As sent by the client.
    pub(crate) cursor: Option<String>,
    pub(crate) limit: u32,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ListExportsError {
    #[error(transparent)]
    Cursor(#[from] InvalidCursor),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// A page of exports, newest first.
pub(crate) async fn list_exports(
    store: &dyn ExportStore,
    keys: &SigningKeys,
    base: &PublicBaseUrl,
    request: ListExports,
) -> Result<Page<Export>, ListExportsError> {
    let ListExports { organization_id, cursor, limit } = request;
    let after = cursor.map(|cursor| Position::open(keys, organization_id, &cursor)).transpose()?;
    // One extra row shows whether there is a next page.
    let mut jobs = store.page(organization_id, after, limit.saturating_add(1)).await?;
    let page_size = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_next_page = jobs.len() > page_size;
    jobs.truncate(page_size);
    let last = jobs.last().filter(|_| has_next_page);
    let next_cursor =
        last.map(|job| Position { created_at: job.created_at, id: job.id }.seal(keys, organization_id));
    let now = now();
    let data = jobs.into_iter().map(|job| base.to_response(job, keys, now)).collect();
    Ok(Page { data, page_info: PageInfo { has_next_page, limit, next_cursor } })
}
