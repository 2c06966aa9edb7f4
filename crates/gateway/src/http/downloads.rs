//! `GET /v1/downloads/{id}`: a file at its signed address. The signature is the credential.

use actix_web::http::Method;
use actix_web::http::header::{CACHE_CONTROL, RETRY_AFTER};
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use assay_contracts::ids::ExportId;
use assay_contracts::problem::{Problem, ProblemCode};
use assay_platform::auth::ServiceClaims;
use assay_platform::web::{WebError, hold_large_until_sent, hold_until_sent};

use super::context::{Gateway, copy_headers};
use super::responses::PublicProblems;
use crate::app::{ServiceCall, ShareExhausted, forward_file};

/// Suggested pause of a client whose organization uses its whole share of the download slots, in seconds.
const RETRY_AFTER_SECONDS: &str = "10";

/// Fetch an export's file
///
/// The address comes from the export's `download_url`. Byte ranges are supported; `bom=1` puts a UTF-8 byte-order mark
/// in front, for spreadsheets.
#[utoipa::path(
    get,
    path = "/v1/downloads/{id}",
    operation_id = "downloadFile",
    tag = "Exports",
    params(
        ("id" = String, Path, description = "Export id"),
        ("expires" = Option<i64>, Query, description = "When the address expires, epoch milliseconds; part of the signature"),
        ("key" = Option<String>, Query, description = "Id of the signing key"),
        ("signature" = Option<String>, Query, description = "Signature"),
        ("bom" = Option<String>, Query, description = "`1`: put a UTF-8 byte-order mark in front"),
    ),
    responses(
        (status = 200, description = "The file (RFC 4180)", body = String, content_type = "text/csv; charset=utf-8",
         headers(("Repr-Digest" = String, description = "SHA-256 of the whole file (RFC 9530), also beside a range; absent with `bom=1`"))),
        (status = 206, description = "A byte range of the file", body = String, content_type = "text/csv; charset=utf-8",
         headers(("Repr-Digest" = String, description = "SHA-256 of the whole file, as with 200"))),
        (status = 304, description = "Not modified"),
        (status = 403, description = "The address was altered or has expired", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "The file is no longer kept", body = Problem, content_type = "application/problem+json"),
        (status = 416, description = "The byte range lies outside of the file", body = Problem, content_type = "application/problem+json"),
        PublicProblems,
    )
)]
pub(crate) async fn download_file(
    request: HttpRequest,
    id: Path<String>,
    gateway: Data<Gateway>,
) -> Result<HttpResponse, WebError> {
    let busy = || WebError::unavailable(&"too many downloads in flight");
    let slot = gateway.downloads.acquire().ok_or_else(busy)?;
    let advice = "ask for a fresh address at the export's download operation";
    let id: ExportId = id.parse().map_err(|_| WebError::new(ProblemCode::InvalidSignature, advice))?;
    let method = if request.method() == Method::HEAD { reqwest::Method::HEAD } else { reqwest::Method::GET };
    let path = format!("/v1/downloads/{id}?{}", request.query_string());
    let call = ServiceCall {
        service: &gateway.export,
        claims: &ServiceClaims::Service,
        method,
        path: &path,
        headers: copy_headers(&request, &["range", "if-range", "if-none-match"]),
        body: None,
    };
    let (response, owner) = forward_file(call).await?;
    let Some(owner) = owner else {
        // Not a file, for instance a refused signature: a small response frees its slot at once, so that callers without a valid
        // signature cannot keep slots by reading slowly.
        return Ok(response.map_body(|_, body| hold_large_until_sent(body, slot)));
    };
    let slot = slot.assign_to(owner).map_err(share_exhausted)?;
    Ok(response.map_body(|_, body| hold_until_sent(body, slot)))
}

fn share_exhausted(ShareExhausted(limit): ShareExhausted) -> WebError {
    let detail =
        format!("your organization downloads {limit} files at the moment: wait until a download has ended");
    WebError::new(ProblemCode::TooManyDownloads, detail)
        .with_header(RETRY_AFTER, RETRY_AFTER_SECONDS)
        .with_header(CACHE_CONTROL, "private, no-store")
}
