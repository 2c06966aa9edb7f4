//! Requests with an idempotency key: their key, and their response, original or replayed.

use actix_web::http::StatusCode;
use actix_web::http::header::{ContentType, LOCATION};
use actix_web::{HttpRequest, HttpResponse};
use assay_contracts::problem::Problem;

use super::error::WebError;
use crate::db::idempotency::{HEADER, IdempotencyKey, RecordedResponse};

/// The idempotency key of a request.
///
/// # Errors
/// 400 when the header is repeated or its value is invalid.
pub fn idempotency_key(request: &HttpRequest) -> Result<Option<IdempotencyKey>, WebError> {
    let values = request.headers().get_all(HEADER).map(|value| value.as_bytes());
    Ok(IdempotencyKey::from_headers(values).map_err(Problem::from)?)
}

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
