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

/// A request to a service on behalf of a caller.
pub(crate) struct ServiceCall<'a> {
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
pub(crate) async fn forward(call: ServiceCall<'_>) -> Result<HttpResponse, WebError> {
    relay(call, &RELAYED_HEADERS, check_route).await
}

/// [`forward`] for a file, with the organization that owns it; `None` if the response is not a file.
///
/// # Errors
/// As [`forward`].
pub(crate) async fn forward_file(
    call: ServiceCall<'_>,
) -> Result<(HttpResponse, Option<OrganizationId>), WebError> {
    let with_owner = [&RELAYED_HEADERS[..], &[FILE_OWNER_HEADER]].concat();
    let mut response = relay(call, &with_owner, check_route).await?;
    // The header is internal: clients do not get it.
    let owner = response.headers_mut().remove(FILE_OWNER_HEADER).next();
    let owner = owner.and_then(|owner| owner.to_str().ok()?.parse().ok());
    Ok((response, owner))
}

/// [`forward`] for a page of the console. People type its paths, so an unknown path is relayed as it is.
///
/// # Errors
/// 503 when the console cannot be reached in time, or does not accept the gateway's token.
pub(crate) async fn forward_page(call: ServiceCall<'_>) -> Result<HttpResponse, WebError> {
    relay(call, &RELAYED_PAGE_HEADERS, |_, _| Ok(())).await
}

/// Relays these headers. `check_missing` gets the body of a 404 or 405, and may refuse to relay it.
async fn relay(
    call: ServiceCall<'_>,
    headers_to_relay: &[&str],
    check_missing: fn(&ServiceClient, &[u8]) -> Result<(), WebError>,
) -> Result<HttpResponse, WebError> {
    let ServiceCall { service, claims, method, path, headers, body } = call;
    let is_head = method == reqwest::Method::HEAD;
    let answer = service.send(claims, Call { method, path, headers, body }).await?;
    let status =
        StatusCode::from_u16(answer.status().as_u16()).map_err(|error| WebError::internal(&error))?;
    if status == StatusCode::UNAUTHORIZED {
        return Err(token_rejected(service));
    }
    let (mut response, length) = relayed_head(status, answer.headers(), headers_to_relay);
    // These have no body (RFC 9110, sections 15.3.5 and 15.4.5).
    if matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        return Ok(response.finish());
    }
    if is_head {
        return Ok(response.body(without_content(BodySize::Sized(length.unwrap_or(0)))));
    }
    if matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) {
        let body = answer.bytes().await.map_err(|error| WebError::unavailable(&error.without_url()))?;
        check_missing(service, &body)?;
        return Ok(response.body(body));
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
    headers_to_relay: &[&str],
) -> (HttpResponseBuilder, Option<u64>) {
    let mut response = HttpResponse::build(status);
    let length = headers.get("content-length").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    // `no_chunking` below sets `Content-Length`.
    for name in headers_to_relay.iter().filter(|name| **name != "content-length") {
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
fn check_route(service: &ServiceClient, body: &[u8]) -> Result<(), WebError> {
    let code = serde_json::from_slice::<Problem>(body).ok().map(|problem| problem.code);
    if !matches!(code, Some(ProblemCode::RouteNotFound | ProblemCode::MethodNotAllowed)) {
        return Ok(());
    }
    let service = service.name();
    tracing::error!(service, "an internal route is missing: check that all roles are of one release");
    Err(WebError::unavailable(&format!("{service} does not know the gateway's call")))
}
