//! Reading request bodies with limits on size (chunked bodies included) and time.

use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE};
use actix_web::web::{Bytes, Payload};
use assay_contracts::problem::ProblemCode;
use assay_contracts::validation::BodyError;
use futures_util::StreamExt;
use tokio::time::timeout;

use super::body_budget::{BodyBudget, BufferedBody};
use super::error::{WebError, body_error};
use crate::runtime::blocking;

/// Media type of HTML forms.
pub const FORM_CONTENT_TYPE: &str = "application/x-www-form-urlencoded";

/// Limits of a request body.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimits {
    /// Size in bytes.
    pub max_bytes: usize,
    /// Time for the client to send the whole body.
    pub deadline: Duration,
}

/// Reads a JSON body as bytes, without parsing it. For small bodies: there is no shared budget.
///
/// # Errors
/// 415 for a content type other than JSON, 413 above the size limit (without reading the rest), 408 when it takes too
/// long, 400 when the connection breaks.
pub async fn read_body(
    request: &HttpRequest,
    payload: Payload,
    limits: BodyLimits,
) -> Result<Bytes, WebError> {
    let budget = BodyBudget::new(limits.max_bytes);
    Ok(Bytes::clone(&*read_buffered_body(request, payload, limits, &budget).await?))
}

/// Reads the fields of an HTML form as bytes, without parsing them, within a memory budget shared by all forms.
///
/// # Errors
/// As [`read_buffered_body`], with 415 for anything but `application/x-www-form-urlencoded`.
pub async fn read_form(
    request: &HttpRequest,
    payload: Payload,
    limits: BodyLimits,
    budget: &BodyBudget,
) -> Result<BufferedBody, WebError> {
    if media_type(request).as_deref() != Some(FORM_CONTENT_TYPE) {
        let detail = format!("send the form as {FORM_CONTENT_TYPE}");
        return Err(WebError::new(ProblemCode::UnsupportedMediaType, detail));
    }
    read_within(request, payload, limits, budget).await
}

/// [`read_body`] within a memory budget shared by all bodies.
///
/// # Errors
/// As [`read_body`], and 503 when the budget is exhausted.
pub async fn read_buffered_body(
    request: &HttpRequest,
    payload: Payload,
    limits: BodyLimits,
    budget: &BodyBudget,
) -> Result<BufferedBody, WebError> {
    check_content_type(request)?;
    read_within(request, payload, limits, budget).await
}

async fn read_within(
    request: &HttpRequest,
    payload: Payload,
    limits: BodyLimits,
    budget: &BodyBudget,
) -> Result<BufferedBody, WebError> {
    let declared_length = check_declared_length(request, limits.max_bytes)?.unwrap_or_default();
    match timeout(limits.deadline, collect(payload, limits.max_bytes, budget, declared_length)).await {
        Ok(result) => result,
        Err(_) => Err(WebError::new(
            ProblemCode::RequestTimeout,
            format!("the body did not arrive within {} seconds", limits.deadline.as_secs()),
        )
        .with_header(CONNECTION, "close")),
    }
}

/// Maximum size of a small body, in bytes; of client requests only imports are larger. Large bodies are parsed on the blocking thread pool, few at once.
pub const SMALL_BODY: usize = 64 * 1024;

/// Parses a body, see [`SMALL_BODY`].
///
/// # Errors
/// 400 with the errors of `parse`.
pub async fn parse_body<T>(
    body: &BufferedBody,
    parse: fn(&[u8]) -> Result<T, BodyError>,
) -> Result<T, WebError>
where
    T: Send + 'static,
{
    if body.len() <= SMALL_BODY {
        // Without a permit: small bodies must not wait for large ones.
        return parse(body).map_err(body_error);
    }
    // The semaphore is never closed.
    let permit = Arc::clone(body.parse_permits()).acquire_owned().await;
    let permit = permit.map_err(|error| WebError::internal(&error))?;
    let bytes = Bytes::clone(body);
    let parsed = blocking(move || {
        // Held until the parser ends: it continues when the client disconnects.
        let _permit = permit;
        parse(&bytes)
    });
    parsed.await.map_err(|error| WebError::internal(&error))?.map_err(body_error)
}

async fn collect(
    mut payload: Payload,
    max_bytes: usize,
    budget: &BodyBudget,
    declared_length: usize,
) -> Result<BufferedBody, WebError> {
    let mut body = budget.receive(declared_length);
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|error| {
            tracing::debug!(cause = %error, "request body could not be read");
            WebError::new(ProblemCode::MalformedJson, "the body ended early, or its chunks are malformed")
        })?;
        if body.len() + chunk.len() > max_bytes {
            return Err(too_large(max_bytes));
        }
        // Unread bytes of a refused body are still in flight, so the connection cannot be reused.
        body.push(&chunk).map_err(|error| error.with_header(CONNECTION, "close"))?;
    }
    Ok(body.finish())
}

/// Accepts `application/json`, `…+json`, or no content type.
fn check_content_type(request: &HttpRequest) -> Result<(), WebError> {
    let Some(essence) = media_type(request) else { return Ok(()) };
    let is_json = essence == "application/json"
        || (essence.strip_suffix("+json").is_some_and(|rest| rest.contains('/') && !rest.ends_with('/')));
    if is_json {
        return Ok(());
    }
    Err(WebError::new(ProblemCode::UnsupportedMediaType, "send the body as application/json"))
}

/// The media type of the body in lower case, without parameters; `None` when there is none.
fn media_type(request: &HttpRequest) -> Option<String> {
    let value = request.headers().get(CONTENT_TYPE)?;
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    Some(essence.trim().to_ascii_lowercase())
}

/// The declared length; 413 above the limit.
fn check_declared_length(request: &HttpRequest, max_bytes: usize) -> Result<Option<usize>, WebError> {
    let declared =
        request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    match declared {
        Some(length) if length > max_bytes as u64 => Err(too_large(max_bytes)),
        declared => Ok(declared.and_then(|length| usize::try_from(length).ok())),
    }
}

fn too_large(max_bytes: usize) -> WebError {
    // Unread bytes of the body are still in flight, so the connection cannot be reused.
    WebError::new(ProblemCode::PayloadTooLarge, format!("the body may have at most {max_bytes} bytes"))
        .with_header(CONNECTION, "close")
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;

    use super::*;

    static PARSING: AtomicUsize = AtomicUsize::new(0);
    static MOST_AT_ONCE: Mutex<usize> = Mutex::new(0);

    fn parse(_: &[u8]) -> Result<(), BodyError> {
        let parsing = PARSING.fetch_add(1, Ordering::SeqCst) + 1;
        let mut most = MOST_AT_ONCE.lock().unwrap();
        *most = parsing.max(*most);
        drop(most);
        std::thread::sleep(Duration::from_millis(20));
        PARSING.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }

    fn body(budget: &BodyBudget, length: usize) -> BufferedBody {
        let mut buffer = budget.receive(length);
        buffer.push(&vec![b' '; length]).unwrap();
        buffer.finish()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn large_bodies_are_parsed_few_at_once() {
        let budget = BodyBudget::new(100 * SMALL_BODY).parsing_at_once(2);
        let bodies: Vec<_> = (0..10).map(|_| body(&budget, SMALL_BODY + 1)).collect();
        for parsed in join_all(bodies.iter().map(|body| parse_body(body, parse))).await {
            parsed.unwrap();
        }
        assert_eq!(*MOST_AT_ONCE.lock().unwrap(), 2);
    }

    #[tokio::test]
    async fn small_body_does_not_wait_for_large_ones() {
        let budget = BodyBudget::new(100 * SMALL_BODY).parsing_at_once(0);
        let small = body(&budget, SMALL_BODY);
        parse_body(&small, |_| Ok(())).await.unwrap();
        let large = body(&budget, SMALL_BODY + 1);
        assert!(futures_util::poll!(Box::pin(parse_body(&large, |_| Ok(())))).is_pending());
    }
}
