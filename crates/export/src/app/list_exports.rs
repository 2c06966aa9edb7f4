//! Lists exports: `GET /v1/evaluations/exports`.

use assay_contracts::export::Export;
use assay_contracts::ids::OrganizationId;
use assay_contracts::page::Page;
use assay_platform::auth::KeyRing;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::now;
use assay_platform::web::cursor::{Cursors, InvalidCursor, Position};

use crate::domain::job::Job;
use crate::domain::public_base_url::PublicBaseUrl;
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
    store: &ExportStore,
    keys: &KeyRing,
    base: &PublicBaseUrl,
    request: ListExports,
) -> Result<Page<Export>, ListExportsError> {
    let ListExports { organization_id, cursor, limit } = request;
    let cursors = Cursors::new(keys, &format!("exports of {organization_id}"));
    let after = cursor.map(|cursor| cursors.decode(&cursor)).transpose()?;
    let found = store.page(organization_id, after, limit.saturating_add(1)).await?;
    let position = |last: &Job| Position { created_at: last.created_at, id: last.id.as_uuid() };
    let Page { data, page_info } = cursors.page(found, limit, position);
    let now = now();
    Ok(Page { data: data.into_iter().map(|job| base.to_response(job, keys, now)).collect(), page_info })
}
