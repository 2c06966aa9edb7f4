//! Forwards a request to the service that owns the resource, and relays its response.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderName, HeaderValue};
use assay_clients::{Call, Service};
use assay_platform::auth::ServiceClaims;
use assay_platform::web::WebError;
use bytes::Bytes;
use reqwest::header::HeaderMap;

/// Response headers that are relayed to the client.
const RELAYED_HEADERS: [&str; 12] = [
    "content-type",
    "content-length",
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

/// Response headers that are relayed to a browser.
const RELAYED_PAGE_HEADERS: [&str; 17] = [
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
    pub(crate) service: &'a Service,
    pub(crate) claims: &'a ServiceClaims,
    pub(crate) method: reqwest::Method,
    pub(crate) path: &'a str,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Bytes>,
}

/// Sends the request and relays the response; the body is streamed.
///
/// # Errors
/// 503 when the service cannot be reached in time or does not accept the gateway's token.
pub(crate) async fn forward(call: Forward<'_>) -> Result<HttpResponse, WebError> {
    relay(call, &RELAYED_HEADERS).await
}

/// [`forward`] for a page of the console.
///
/// # Errors
/// As [`forward`].
pub(crate) async fn forward_page(call: Forward<'_>) -> Result<HttpResponse, WebError> {
    relay(call, &RELAYED_PAGE_HEADERS).await
}

async fn relay(call: Forward<'_>, relayed: &[&str]) -> Result<HttpResponse, WebError> {
    let Forward { service, claims, method, path, headers, body } = call;
    let is_head = method == reqwest::Method::HEAD;
    let answer = service.send(claims, Call { method, path, headers, body }).await?;
    let status =
        StatusCode::from_u16(answer.status().as_u16()).map_err(|error| WebError::internal(&error))?;
    if status == StatusCode::UNAUTHORIZED {
        // The client's key is valid; the gateway's own token was rejected, because of clock skew or different secrets. An
        // operator has to fix that, and the client can only try again.
        let service = service.name();
        tracing::error!(
            service,
            "the gateway's token was rejected: check that the clocks and the secrets are the same"
        );
        return Err(WebError::unavailable(&format!("{service} rejected the gateway's token")));
    }
    let mut response = HttpResponse::build(status);
    let mut length = None;
    for name in relayed {
        // Cookies are set by one header each.
        for value in answer.headers().get_all(*name) {
            if *name == "content-length" {
                length = value.to_str().ok().and_then(|value| value.parse::<u64>().ok());
                continue;
            }
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
    // These have neither a body nor a Content-Length (RFC 9110, section 15.4.5).
    if matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        return Ok(response.finish());
    }
    if is_head {
        return Ok(response.body(actix_web::body::SizedStream::new(
            length.unwrap_or(0),
            futures_util::stream::empty::<Result<Bytes, std::io::Error>>(),
        )));
    }
    Ok(match length {
        Some(0) => response.finish(),
        Some(length) => response.body(actix_web::body::SizedStream::new(length, answer.bytes_stream())),
        None => response.streaming(answer.bytes_stream()),
    })
}
