//! `/internal/v1/exports`: the gateway forwards `/v1/evaluations/exports` to it.

use std::time::Duration;

use actix_web::web::{Data, Json, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use assay_contracts::export::{DownloadAddress, Export, NewExport};
use assay_contracts::internal::PUBLIC_BASE_URL_HEADER;
use assay_contracts::problem::ProblemCode;
use assay_contracts::tenant::Scope;
use assay_platform::db::idempotency::Fingerprint;
use assay_platform::web::{
    BodyLimits, Caller, SMALL_BODY, WebError, body_error, idempotency_key, page_parameters, query_pairs,
    read_body, respond_with,
};

use super::Services;
use crate::app::create_export::{CreateExport, create_export};
use crate::app::list_exports::{ListExports, list_exports};
use crate::app::read_export::{find_download, read_export};
use crate::domain::public_base_url::PublicBaseUrl;

/// A body has little more than filters, with some values each.
const BODY_LIMITS: BodyLimits = BodyLimits { max_bytes: SMALL_BODY, deadline: Duration::from_secs(10) };

/// Queues an export: 201 with the export.
pub(super) async fn create(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
    payload: Payload,
) -> Result<HttpResponse, WebError> {
    let organization_id = caller.tenant(Scope::Exports)?.organization_id;
    let key = idempotency_key(&request)?;
    let body = read_body(&request, payload, BODY_LIMITS).await?;
    let export = NewExport::parse(&body).map_err(body_error)?;
    let idempotency = key.map(|key| (key, Fingerprint::of(&body)));
    let creation = CreateExport { organization_id, export, idempotency, max_open: services.max_open_exports };
    let created = create_export(&services.store, &services.outbox, &services.scoring, creation);
    respond_with(created.await?)
}

pub(super) async fn list(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
) -> Result<HttpResponse, WebError> {
    let organization_id = caller.tenant(Scope::Exports)?.organization_id;
    let base = public_base(&request)?;
    let (cursor, limit) = page_parameters(&mut query_pairs(&request, &["cursor", "limit"])?)?;
    let page = ListExports { organization_id, cursor, limit };
    let exports = list_exports(&services.store, &services.keys, &base, page).await?;
    services.response_budget.limit(organization_id, HttpResponse::Ok().json(exports))
}

pub(super) async fn read(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
    id: Path<String>,
) -> Result<Json<Export>, WebError> {
    let organization_id = caller.tenant(Scope::Exports)?.organization_id;
    let base = public_base(&request)?;
    Ok(Json(read_export(&services.store, &services.keys, &base, organization_id, &id).await?))
}

pub(super) async fn download(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
    id: Path<String>,
) -> Result<Json<DownloadAddress>, WebError> {
    let organization_id = caller.tenant(Scope::Exports)?.organization_id;
    let base = public_base(&request)?;
    Ok(Json(find_download(&services.store, &services.keys, &base, organization_id, &id).await?))
}

/// Base of download URLs; the gateway sets the header on every call.
fn public_base(request: &HttpRequest) -> Result<PublicBaseUrl, WebError> {
    let value = request.headers().get(PUBLIC_BASE_URL_HEADER).and_then(|value| value.to_str().ok());
    PublicBaseUrl::parse(value.unwrap_or_default()).map_err(|error| {
        WebError::new(ProblemCode::InvalidRequest, format!("the header {PUBLIC_BASE_URL_HEADER} {error}"))
    })
}
