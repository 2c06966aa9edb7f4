//! Error responses, all as problem objects (RFC 9457). The policy of every role:
//!
//! - **4xx**: the client can fix the request. `detail` and `errors` say what is wrong and what to send instead. The codes are
//!   the closed list of [`ProblemCode`]. A 4xx is not an incident: nothing is logged above `debug`.
//! - **500**: a bug, corrupt data or a failed invariant; a retry does not help. Only [`WebError::internal`] creates one.
//! - **503**: overload or an outage of a dependency; the same request may succeed later, and the response has `Retry-After`.
//!   Created by [`WebError::unavailable`]. A [`DatabaseError`] is a 503 when it is transient, else a 500. Other retryable
//!   refusals are 4xx: 408 (body too slow) and 429 (rate limit).
//! - **Logged once**, where the error becomes a response: `internal` logs the cause at `error`, `unavailable` at `warn`, both
//!   within the span of the request, so the line has the request id. Code that returns an error does not log it.
//! - **Never sent**: the cause of a 5xx (SQL, addresses, stack traces, error text of a dependency), secrets, and records of
//!   another organization: a resource of another organization is a 404, as if it did not exist. The client gets the
//!   request id, which finds the cause in the log.
//! - **A use case has its own error enum**, and one `From<…> for WebError` next to its handlers maps it to a code.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::{
    CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use actix_web::{HttpResponse, ResponseError};
use assay_contracts::problem::{Problem, ProblemCode};
use assay_contracts::validation::BodyError;

use crate::auth::InvalidToken;
use crate::db::DatabaseError;
use crate::runtime::RequestContext;

/// Media type of problem objects (RFC 9457, section 3).
pub const PROBLEM_CONTENT_TYPE: &str = "application/problem+json";

/// `Retry-After` of a 503.
const RETRY_AFTER_SECONDS: &str = "1";

/// An error response: a problem and its headers.
#[derive(Debug)]
pub struct WebError {
    problem: Box<Problem>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl WebError {
    /// A problem with the status and title of `code`, and an explanation for the client.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self::from(Problem::new(code, detail))
    }

    /// 500. Logs the cause, which is not sent.
    pub fn internal(cause: &dyn fmt::Display) -> Self {
        tracing::error!(cause = %cause, "request failed");
        Self::new(
            ProblemCode::Internal,
            "the request failed; the log of the service has the cause under this request id",
        )
    }

    /// 503 with `Retry-After`. Logs the cause, which is not sent.
    pub fn unavailable(cause: &dyn fmt::Display) -> Self {
        tracing::warn!(cause = %cause, "request refused: unavailable");
        Self::new(ProblemCode::Unavailable, "try again in a moment")
    }

    /// 401 with `WWW-Authenticate: Bearer`.
    pub fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(ProblemCode::Unauthorized, detail)
    }

    /// Adds a header to the response, replacing an earlier one; an invalid value is ignored.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.retain(|(known, _)| *known != name);
            self.headers.push((name, value));
        }
        self
    }

    /// The problem object to be sent.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }
}

impl From<Problem> for WebError {
    fn from(problem: Problem) -> Self {
        let headers = match problem.code {
            ProblemCode::Unauthorized => vec![(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))],
            ProblemCode::Unavailable => vec![(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS))],
            _ => Vec::new(),
        };
        Self { problem: Box::new(problem), headers }
    }
}

impl From<DatabaseError> for WebError {
    fn from(error: DatabaseError) -> Self {
        if error.is_transient() { Self::unavailable(&error) } else { Self::internal(&error) }
    }
}

impl From<InvalidToken> for WebError {
    fn from(error: InvalidToken) -> Self {
        Self::unauthorized(error.to_string())
    }
}

/// 400 for a refused body.
pub fn body_error(error: BodyError) -> WebError {
    match error {
        BodyError::Malformed(detail) => WebError::new(ProblemCode::MalformedJson, detail),
        BodyError::Invalid(errors) => {
            let first = errors.first().map_or_else(String::new, |error| {
                let field = if error.pointer.is_empty() { "the body" } else { &error.pointer };
                format!("{field} {}", error.detail)
            });
            Problem::new(ProblemCode::InvalidRequest, first).with_errors(errors).into()
        }
    }
}

impl fmt::Display for WebError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.problem.code.as_str())
    }
}

impl ResponseError for WebError {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        let mut problem = (*self.problem).clone();
        problem.request_id = RequestContext::current().map(|context| context.request_id);
        let mut response = HttpResponse::build(self.status_code());
        for header in &self.headers {
            if header.0 == CONNECTION {
                // actix writes this header itself and drops it from the header map.
                response.force_close();
            } else {
                response.insert_header(header.clone());
            }
        }
        response.insert_header((CONTENT_TYPE, PROBLEM_CONTENT_TYPE));
        match serde_json::to_vec(&problem) {
            Ok(body) => response.body(body),
            Err(_) => response.finish(),
        }
    }
}
