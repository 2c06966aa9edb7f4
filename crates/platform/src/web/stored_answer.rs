//! The answer to a request with an idempotency key, the first time and every time after.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{ContentType, LOCATION};

use super::error::WebError;
use crate::db::idempotency::StoredAnswer;

/// Gives a stored answer, byte for byte as it was stored.
///
/// # Errors
/// 500 when what is stored is no answer.
pub fn give_stored_answer(answer: StoredAnswer) -> Result<HttpResponse, WebError> {
    let status = StatusCode::from_u16(answer.status).map_err(|error| WebError::internal(&error))?;
    let mut response = HttpResponse::build(status);
    if let Some(location) = answer.location {
        response.insert_header((LOCATION, location));
    }
    Ok(response.content_type(ContentType::json()).body(answer.body))
}
