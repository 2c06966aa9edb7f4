//! The response to a request with an idempotency key, original or replayed.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{ContentType, LOCATION};

use super::error::WebError;
use crate::db::idempotency::RecordedResponse;

/// Sends a recorded response, byte for byte.
///
/// # Errors
/// 500 when the stored status is invalid.
pub fn respond_with(recorded: RecordedResponse) -> Result<HttpResponse, WebError> {
    let status = StatusCode::from_u16(recorded.status).map_err(|error| WebError::internal(&error))?;
    let mut response = HttpResponse::build(status);
    if let Some(location) = recorded.location {
        response.insert_header((LOCATION, location));
    }
    Ok(response.content_type(ContentType::json()).body(recorded.body))
}
