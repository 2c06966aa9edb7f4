//! Every error answer is a problem object. A 5xx never carries its cause: the cause is logged once, here.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::{
    ALLOW, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use actix_web::{HttpResponse, ResponseError};
use assay_contracts::fault::BodyError;
use assay_contracts::problem::{Problem, ProblemCode};

use crate::auth::InvalidToken;
use crate::db::DatabaseError;
use crate::runtime::RequestContext;

/// Media type of problem objects (RFC 9457, section 3).
pub const PROBLEM_CONTENT_TYPE: &str = "application/problem+json";

/// Seconds that a client is told to wait when the service is busy.
const RETRY_AFTER_SECONDS: &str = "1";

/// An error answer: a problem and the headers that go with it.
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

    /// 500. The cause goes to the log with the request id, and nowhere else.
    pub fn internal(cause: &dyn fmt::Display) -> Self {
        tracing::error!(cause = %cause, "request failed");
        Self::new(
            ProblemCode::Internal,
            "the request failed; the log of the service has the cause under this request id",
        )
    }

    /// 503 with `Retry-After`. The cause goes to the log.
    pub fn unavailable(cause: &dyn fmt::Display) -> Self {
        tracing::warn!(cause = %cause, "request refused: unavailable");
        Self::new(ProblemCode::Unavailable, "try again in a moment")
    }

    /// 401 with `WWW-Authenticate: Bearer`.
    pub fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(ProblemCode::Unauthorized, detail)
    }

    /// 405 with `Allow`.
    pub fn method_not_allowed(allow: &str) -> Self {
        Self::new(ProblemCode::MethodNotAllowed, format!("allowed here: {allow}")).with_header(ALLOW, allow)
    }

    /// Adds a header to the answer; a value that no header can hold is left out.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.retain(|(known, _)| *known != name);
            self.headers.push((name, value));
        }
        self
    }

    /// The problem that will be answered.
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

/// A refused body as an answer.
pub fn body_error(error: BodyError) -> WebError {
    match error {
        BodyError::Malformed(detail) => WebError::new(ProblemCode::MalformedJson, detail),
        BodyError::Invalid(faults) => {
            let first = faults.first().map_or_else(String::new, |fault| {
                let place = if fault.pointer.is_empty() { "the body" } else { &fault.pointer };
                format!("{place} {}", fault.detail)
            });
            Problem::new(ProblemCode::InvalidRequest, first).with_errors(faults).into()
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
                // The server writes this header itself: as a mere header it would be left out.
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
