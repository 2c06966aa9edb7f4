//! Security and caching headers of every response of the console, error responses included.

use actix_web::http::header::{CACHE_CONTROL, HeaderMap, HeaderName, HeaderValue};

/// Nothing from another host, nothing inline, no frames.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Adds the headers that a response lacks. A response without its own `Cache-Control` may not be stored.
pub fn add_page_headers(headers: &mut HeaderMap) {
    for (name, value) in [
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("content-security-policy"), CONTENT_SECURITY_POLICY),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        // Our own forms send their origin; other sites get no referrer.
        (HeaderName::from_static("referrer-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
    ] {
        if !headers.contains_key(&name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
}
