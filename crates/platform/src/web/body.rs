//! Reading a request body: bounded in size, also when it is chunked, and in time.

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE};
use actix_web::web::{Bytes, Payload};
use assay_contracts::fault::BodyError;
use assay_contracts::problem::ProblemCode;
use futures_util::StreamExt;
use tokio::time::timeout;

use super::body_memory::{BodyMemory, HeldBody};
use super::error::{WebError, body_error};
use crate::runtime::blocking;

/// Bounds of a request body.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimits {
    /// Size in bytes.
    pub max_bytes: usize,
    /// How long the client may take to send all of it.
    pub deadline: Duration,
}

/// Reads a JSON body as bytes, without parsing it. For small bodies: nothing bounds them together.
///
/// # Errors
/// 415 when it is declared as something else than JSON, 413 when it is larger than the limit (without reading the
/// rest), 408 when it takes too long, 400 when the connection breaks in the middle.
pub async fn read_body(
    request: &HttpRequest,
    payload: Payload,
    limits: BodyLimits,
) -> Result<Bytes, WebError> {
    let memory = BodyMemory::new(limits.max_bytes);
    Ok(Bytes::clone(&*read_held_body(request, payload, limits, &memory).await?))
}

/// [`read_body`] within a budget of memory that many bodies share.
///
/// # Errors
/// As [`read_body`], and 503 when the budget is used up.
pub async fn read_held_body(
    request: &HttpRequest,
    payload: Payload,
    limits: BodyLimits,
    memory: &BodyMemory,
) -> Result<HeldBody, WebError> {
    check_content_type(request)?;
    let expected = check_declared_length(request, limits.max_bytes)?.unwrap_or_default();
    match timeout(limits.deadline, collect(payload, limits.max_bytes, memory, expected)).await {
        Ok(result) => result,
        Err(_) => Err(WebError::new(
            ProblemCode::RequestTimeout,
            format!("the body did not arrive within {} seconds", limits.deadline.as_secs()),
        )
        .with_header(CONNECTION, "close")),
    }
}

/// Bodies above this size, in bytes, are parsed away from the threads that serve requests.
pub const LARGE_BODY: usize = 256 * 1024;

/// What `parse` makes of a body.
///
/// # Errors
/// 400 with the faults that `parse` found.
pub async fn parse_body<T>(body: &Bytes, parse: fn(&[u8]) -> Result<T, BodyError>) -> Result<T, WebError>
where
    T: Send + 'static,
{
    let parsed = if body.len() > LARGE_BODY {
        let body = body.clone();
        blocking(move || parse(&body)).await.map_err(|error| WebError::internal(&error))?
    } else {
        parse(body)
    };
    parsed.map_err(body_error)
}

async fn collect(
    mut payload: Payload,
    max_bytes: usize,
    memory: &BodyMemory,
    expected: usize,
) -> Result<HeldBody, WebError> {
    let mut body = memory.receive(expected);
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|error| {
            tracing::debug!(cause = %error, "a body could not be read");
            WebError::new(ProblemCode::MalformedJson, "the body ended early, or its chunks are malformed")
        })?;
        if body.len() + chunk.len() > max_bytes {
            return Err(too_large(max_bytes));
        }
        // The rest of a refused body is still under way: the connection cannot be used again.
        body.push(&chunk).map_err(|error| error.with_header(CONNECTION, "close"))?;
    }
    Ok(body.finish())
}

/// `application/json`, `…+json`, or nothing at all.
fn check_content_type(request: &HttpRequest) -> Result<(), WebError> {
    let Some(value) = request.headers().get(CONTENT_TYPE) else { return Ok(()) };
    let essence =
        value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = essence == "application/json"
        || (essence.strip_suffix("+json").is_some_and(|rest| rest.contains('/') && !rest.ends_with('/')));
    if is_json {
        return Ok(());
    }
    Err(WebError::new(ProblemCode::UnsupportedMediaType, "send the body as application/json"))
}

/// The declared length, if there is one.
fn check_declared_length(request: &HttpRequest, max_bytes: usize) -> Result<Option<usize>, WebError> {
    let declared =
        request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    match declared {
        Some(length) if length > max_bytes as u64 => Err(too_large(max_bytes)),
        declared => Ok(declared.and_then(|length| usize::try_from(length).ok())),
    }
}

fn too_large(max_bytes: usize) -> WebError {
    // The rest of the body is still under way: the connection cannot be used again.
    WebError::new(ProblemCode::PayloadTooLarge, format!("the body may have at most {max_bytes} bytes"))
        .with_header(CONNECTION, "close")
}
