//! Forwards a request to the service that owns the resource, and relays its response.

use actix_web::body::{BodySize, SizedStream};
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::{HttpResponse, HttpResponseBuilder};
use assay_clients::{Call, ServiceClient};
use assay_contracts::ids::OrganizationId;
use assay_contracts::internal::FILE_OWNER_HEADER;
use assay_contracts::problem::{Problem, ProblemCode};
use assay_platform::auth::ServiceClaims;
use assay_platform::web::{WebError, without_content};
use bytes::Bytes;
use reqwest::header::HeaderMap;

const RELAYED_HEADERS: [&str; 11] = [
    "content-type",
    "content-disposition",
    "content-range",
    "accept-ranges",
    "etag",
    "repr-digest",
    "cache-control",
    "location",
    "retry-after",
    "allow",
    "x-content-type-options",
];

const RELAYED_PAGE_HEADERS: [&str; 18] = [
    "allow",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-length",
    "content-security-policy",
    "content-type",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
    "etag",
    "hx-redirect",
    "location",
    "permissions-policy",
    "referrer-policy",
    "retry-after",
    "set-cookie",
    "vary",
    "x-content-type-options",
];

/// A request to a service.
pub(crate) struct Forward<'a> {
    pub(crate) service: &'a ServiceClient,
    pub(crate) claims: &'a ServiceClaims,
    pub(crate) method: reqwest::Method,
    pub(crate) path: &'a str,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Bytes>,
}

/// Sends the request and relays the response; the body is streamed.
///
/// # Errors
/// 503 when the service cannot be reached in time, does not accept the gateway's token, or does not know the route.
pub(crate) async fn forward(call: Forward<'_>) -> Result<HttpResponse, WebError> {
    relay(call, &RELAYED_HEADERS, check_route).await
}

/// [`forward`] for a file, with the organization that owns it: `None` for any other response.
///
/// # Errors
/// As [`forward`].
pub(crate) async fn forward_file(
    call: Forward<'_>,
) -> Result<(HttpResponse, Option<OrganizationId>), WebError> {
    let relayed = [&RELAYED_HEADERS[..], &[FILE_OWNER_HEADER]].concat();
    let mut response = relay(call, &relayed, check_route).await?;
    // The header is internal.
    let owner = response.headers_mut().remove(FILE_OWNER_HEADER).next();
    let owner = owner.and_then(|owner| owner.to_str().ok()?.parse().ok());
    Ok((response, owner))
}

/// [`forward`] for a page of the console, whose paths people type: an unknown one is no fault of the installation.
///
/// # Errors
/// 503 when the console cannot be reached in time, or does not accept the gateway's token.
pub(crate) async fn forward_page(call: Forward<'_>) -> Result<HttpResponse, WebError> {
    relay(call, &RELAYED_PAGE_HEADERS, |_, _| Ok(())).await
}

/// `check_missing` sees the body of a 404 or 405, and may refuse to relay it.
async fn relay(
    call: Forward<'_>,
    relayed: &[&str],
    check_missing: fn(&ServiceClient, &[u8]) -> Result<(), WebError>,
) -> Result<HttpResponse, WebError> {
    let Forward { service, claims, method, path, headers, body } = call;
    let is_head = method == reqwest::Method::HEAD;
    let answer = service.send(claims, Call { method, path, headers, body }).await?;
    let status =
        StatusCode::from_u16(answer.status().as_u16()).map_err(|error| WebError::internal(&error))?;
    if status == StatusCode::UNAUTHORIZED {
        return Err(token_rejected(service));
    }
    let (mut response, length) = relayed_head(status, answer.headers(), relayed);
    // These have no body (RFC 9110, sections 15.3.5 and 15.4.5).
    if matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        return Ok(response.finish());
    }
    if is_head {
        return Ok(response.body(without_content(BodySize::Sized(length.unwrap_or(0)))));
    }
    if matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) {
        let problem = answer.bytes().await.map_err(|error| WebError::unavailable(&error.without_url()))?;
        check_missing(service, &problem)?;
        return Ok(response.body(problem));
    }
    Ok(match length {
        Some(0) => response.finish(),
        Some(length) => response.body(SizedStream::new(length, answer.bytes_stream())),
        None => response.streaming(answer.bytes_stream()),
    })
}

/// Status and headers of the response, and the length of its body.
fn relayed_head(
    status: StatusCode,
    headers: &HeaderMap,
    relayed: &[&str],
) -> (HttpResponseBuilder, Option<u64>) {
    let mut response = HttpResponse::build(status);
    let length = headers.get("content-length").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    // `no_chunking` below sets `Content-Length`.
    for name in relayed.iter().filter(|name| **name != "content-length") {
        // There is one `Set-Cookie` header for each cookie.
        for value in headers.get_all(*name) {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(*name), HeaderValue::from_bytes(value.as_bytes()))
            {
                response.append_header((name, value));
            }
        }
    }
    if let Some(length) = length {
        response.no_chunking(length);
    }
    (response, length)
}

/// The gateway's own token was rejected, not the client's credentials: the clocks or the secrets differ. An operator
/// has to fix that, and the client can only try again.
fn token_rejected(service: &ServiceClient) -> WebError {
    let service = service.name();
    tracing::error!(
        service,
        "the gateway's token was rejected: check that the clocks and the secrets are the same"
    );
    WebError::unavailable(&format!("{service} rejected the gateway's token"))
}

/// Refuses to relay that the service has no such route or method: the client's request was right, gateway and service are of
/// different releases, and the problem names an internal path.
fn check_route(service: &ServiceClient, problem: &[u8]) -> Result<(), WebError> {
    let code = serde_json::from_slice::<Problem>(problem).ok().map(|problem| problem.code);
    if !matches!(code, Some(ProblemCode::RouteNotFound | ProblemCode::MethodNotAllowed)) {
        return Ok(());
    }
    let service = service.name();
    tracing::error!(service, "an internal route is missing: check that all roles are of one release");
    Err(WebError::unavailable(&format!("{service} does not know the gateway's call")))
}
