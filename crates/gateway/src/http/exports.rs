//! `/v1/evaluations/exports…`: creates, lists and downloads exports.

use actix_web::HttpResponse;
use actix_web::http::header::{ACCEPT, CACHE_CONTROL, LOCATION, VARY};
use actix_web::web::{Path, Payload};
use assay_contracts::export::{DownloadAddress, Export, NewExport, NewExportRequest};
use assay_contracts::ids::ExportId;
use assay_contracts::internal::PUBLIC_BASE_URL_HEADER;
use assay_contracts::page::Page;
use assay_contracts::problem::{Problem, ProblemCode};
use assay_platform::web::WebError;
use bytes::Bytes;
use reqwest::Method;
use reqwest::header::HeaderValue;

use super::context::{path_id, with_query};
use super::keyed_request::{KeyedRequest, read_answer};
use super::request_body::read_small;
use super::responses::{
    BadRequest, BodyProblems, CommonProblems, IdempotencyConflict, IdempotencyHeader, NotFound,
};
use crate::app::{ServiceCall, forward};
use crate::domain::prefers_json;

/// Create an evaluation export
///
/// Queues an export job. Its file holds every evaluation that was committed before it was created, of conversations
/// whose first message lies in `[filters.from, filters.to)`.
#[utoipa::path(
    post,
    path = "/v1/evaluations/exports",
    operation_id = "createExport",
    tag = "Exports",
    params(IdempotencyHeader),
    request_body = NewExportRequest,
    responses(
        (status = 201, description = "Created and queued", body = Export,
         headers(("Location" = String, description = "Address of the export"))),
        BadRequest,
        BodyProblems,
        IdempotencyConflict,
        CommonProblems,
    ),
)]
pub(crate) async fn create_export(request: KeyedRequest, payload: Payload) -> Result<HttpResponse, WebError> {
    let body = read_small(&request, payload, NewExport::parse).await?;
    send(&request, Method::POST, "/internal/v1/exports", Some(body.clone())).await
}

/// List evaluation exports
///
/// Newest first.
#[utoipa::path(
    get,
    path = "/v1/evaluations/exports",
    operation_id = "listExports",
    tag = "Exports",
    params(
        ("cursor" = Option<String>, Query, min_length = 1, description = "Opaque cursor of a previous page"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Items at most; 20 when left out"),
    ),
    responses(
        (status = 200, description = "A page of exports", body = Page<Export>),
        BadRequest,
        CommonProblems,
    ),
)]
pub(crate) async fn list_exports(request: KeyedRequest) -> Result<HttpResponse, WebError> {
    request.occupy_slot()?;
    send(&request, Method::GET, &with_query("/internal/v1/exports", &request.http), None).await
}

/// Get an evaluation export
#[utoipa::path(
    get,
    path = "/v1/evaluations/exports/{exportId}",
    operation_id = "getExport",
    tag = "Exports",
    params(("exportId" = String, Path, description = "Export id")),
    responses(
        (status = 200, description = "The export", body = Export),
        NotFound,
        CommonProblems,
    ),
)]
pub(crate) async fn get_export(request: KeyedRequest, id: Path<String>) -> Result<HttpResponse, WebError> {
    request.occupy_slot()?;
    let id: ExportId = path_id(&id, ProblemCode::ExportNotFound)?;
    send(&request, Method::GET, &format!("/internal/v1/exports/{id}"), None).await
}

/// Download an evaluation export
///
/// Redirects to the signed address of the file, which needs no API key for 15 minutes. With
/// `Accept: application/json` the address is answered as JSON instead.
#[utoipa::path(
    get,
    path = "/v1/evaluations/exports/{id}/download",
    operation_id = "downloadExport",
    tag = "Exports",
    params(("id" = String, Path, description = "Export id")),
    responses(
        (status = 200, description = "The signed address, when JSON is preferred", body = DownloadAddress),
        (status = 302, description = "Redirect to the signed address",
         headers(("Location" = String, description = "Signed address"))),
        (status = 404, description = "Resource not found, or its file is no longer kept", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "Conflict: not complete yet, or failed", body = Problem, content_type = "application/problem+json"),
        CommonProblems,
    ),
)]
pub(crate) async fn download_export(
    request: KeyedRequest,
    id: Path<String>,
) -> Result<HttpResponse, WebError> {
    request.occupy_slot()?;
    let id: ExportId = path_id(&id, ProblemCode::ExportNotFound)?;
    let response = send(&request, Method::GET, &format!("/internal/v1/exports/{id}/download"), None).await?;
    if !response.status().is_success() {
        return Ok(response);
    }
    let address: DownloadAddress = read_answer(response).await?;
    let accept: Vec<&str> =
        request.http.headers().get_all(ACCEPT).filter_map(|value| value.to_str().ok()).collect();
    let is_json = prefers_json(&accept.join(","));
    let mut answer = if is_json { HttpResponse::Ok() } else { HttpResponse::Found() };
    answer.insert_header((CACHE_CONTROL, "no-store")).insert_header((VARY, "accept"));
    if is_json {
        return Ok(answer.json(address));
    }
    Ok(answer.insert_header((LOCATION, address.download_url)).finish())
}

/// Passes a request on to export, with the public base URL, with which the addresses of files begin.
async fn send(
    request: &KeyedRequest,
    method: Method,
    path: &str,
    body: Option<Bytes>,
) -> Result<HttpResponse, WebError> {
    let mut call = request.get(&request.gateway.export, path, &["idempotency-key"]);
    if let Ok(base) = HeaderValue::from_str(&request.gateway.public_base_url(&request.http)) {
        call.headers.insert(PUBLIC_BASE_URL_HEADER, base);
    }
    forward(ServiceCall { method, body, ..call }).await
}
