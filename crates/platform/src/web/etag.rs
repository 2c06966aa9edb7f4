//! JSON responses with an `ETag`: a client that has the same bytes gets a 304.

use actix_web::http::header::{CACHE_CONTROL, ContentType, ETag, EntityTag, Header, IfNoneMatch};
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::error::WebError;

/// A client may store a response, and must revalidate it before every use.
const CACHE_POLICY: &str = "private, no-cache";

/// `value` as JSON, or 304 when `If-None-Match` has its `ETag`.
///
/// # Errors
/// When the value cannot be written as JSON.
pub fn respond_with_etag<T: Serialize>(request: &HttpRequest, value: &T) -> Result<HttpResponse, WebError> {
    let body = serde_json::to_vec(value).map_err(|error| WebError::internal(&error))?;
    Ok(respond_json_with_etag(request, body.into()))
}

/// [`respond_with_etag`] for JSON that is already written.
pub fn respond_json_with_etag(request: &HttpRequest, body: Bytes) -> HttpResponse {
    let etag = EntityTag::new_strong(hex::encode(&Sha256::digest(&body)[..16]));
    let is_known = match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => true,
        Ok(IfNoneMatch::Items(known)) => known.iter().any(|known| known.weak_eq(&etag)),
        Err(_) => false,
    };
    let mut response = if is_known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    response.insert_header(ETag(etag)).insert_header((CACHE_CONTROL, CACHE_POLICY));
    if is_known {
        return response.finish();
    }
    response.content_type(ContentType::json()).body(body)
}
