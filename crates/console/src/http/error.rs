//! Errors of pages. The middleware [`super::respond::finish`] renders the page of an error, because theme and session are those
//! of the request.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, ResponseError};
use assay_clients::ClientError;
use assay_contracts::problem::{Problem, ProblemCode};
use assay_platform::web::WebError;

use crate::domain::{KeptForm, capitalized};

/// Why there is no page.
#[derive(Debug, Clone)]
pub(crate) enum PageError {
    /// There is no session, or it has ended; with what was typed into the form that was sent.
    SignedOut(Option<KeptForm>),
    /// There is no such page, or the organization has no such record.
    NotFound,
    /// The address does not support the method.
    MethodNotAllowed,
    /// The form has another origin, or not the CSRF token of this session; with what was typed into it, unless another site sent it.
    CsrfRejected(Option<KeptForm>),
    /// A request that our own pages do not make.
    Invalid(String),
    /// It conflicts with stored data, for instance with a limit.
    Conflict(String),
    /// More than may be requested in a short time; the text says when to try again.
    TooMany(ProblemCode, String),
    /// A service cannot be reached; with what was typed into the form that was sent.
    Unavailable(Option<KeptForm>),
    /// A bug.
    Internal,
}

impl PageError {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::SignedOut(_) => StatusCode::UNAUTHORIZED,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::CsrfRejected(_) => StatusCode::FORBIDDEN,
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::TooMany(..) => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    pub(crate) fn title(&self) -> &'static str {
        match self {
            Self::SignedOut(_) => "Sign in again",
            Self::NotFound | Self::MethodNotAllowed => "There is no such page",
            Self::CsrfRejected(_) => "The form is out of date",
            Self::Invalid(_) => "The request cannot be read",
            Self::Conflict(_) => "That is not possible now",
            Self::TooMany(code, _) => code.title(),
            Self::Unavailable(_) => "Not available at the moment",
            Self::Internal => "Something went wrong",
        }
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Self::SignedOut(_) => "Your session has ended.",
            Self::NotFound => "The address may be mistyped, or what was there has been deleted.",
            Self::MethodNotAllowed => "The address belongs to a form or a button of another page.",
            Self::CsrfRejected(Some(_)) => {
                "It belongs to a session that has ended. What you typed is kept: go back to the form, check it and send it again."
            }
            Self::CsrfRejected(None) => {
                "It does not belong to your session. Go back, reload the page and send it again."
            }
            Self::Invalid(detail) | Self::Conflict(detail) | Self::TooMany(_, detail) => detail,
            Self::Unavailable(Some(_)) => {
                "A part of Assay does not answer. What you typed is kept: go back to the form, see whether it was done all the same, and send it again if not."
            }
            Self::Unavailable(None) => {
                "A part of Assay does not answer. What was stored is not lost; try again in a moment."
            }
            Self::Internal => "The log of the service has the cause under the id of this request.",
        }
    }

    /// The form whose request failed.
    pub(crate) fn kept_form(&self) -> Option<&KeptForm> {
        match self {
            Self::SignedOut(kept) | Self::CsrfRejected(kept) | Self::Unavailable(kept) => kept.as_ref(),
            _ => None,
        }
    }

    /// The error with the form that was sent, which is kept without a session and while a service cannot be reached.
    pub(crate) fn with_form(self, sent: Option<KeptForm>) -> Self {
        match self {
            Self::SignedOut(kept) => Self::SignedOut(kept.or(sent)),
            Self::Unavailable(_) => Self::Unavailable(sent),
            other => other,
        }
    }

    /// A refusal for the moment. The limits of the services are per minute.
    fn too_many(problem: &Problem) -> Self {
        let limit = problem.detail.as_deref().unwrap_or(&problem.title);
        let text = format!("{}. This one was refused; try again in a minute.", capitalized(limit));
        Self::TooMany(problem.code, text)
    }

    /// The page error for any error of actix-web: of a handler, of routing or of an extractor. `None`, and so no page, for a
    /// caller that is not the gateway.
    pub(crate) fn of(error: &actix_web::Error) -> Option<Self> {
        if let Some(error) = error.as_error::<Self>() {
            return Some(error.clone());
        }
        Some(match error.as_response_error().status_code() {
            StatusCode::UNAUTHORIZED => return None,
            StatusCode::METHOD_NOT_ALLOWED => Self::MethodNotAllowed,
            StatusCode::SERVICE_UNAVAILABLE => Self::Unavailable(None),
            status if status.is_client_error() => Self::NotFound,
            _ => Self::Internal,
        })
    }
}

impl fmt::Display for PageError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.title())
    }
}

impl ResponseError for PageError {
    fn status_code(&self) -> StatusCode {
        self.status()
    }

    /// The status alone: the middleware adds the page.
    fn error_response(&self) -> HttpResponse {
        HttpResponse::new(self.status())
    }
}

/// A failed call to a service. Faults that a person can correct are shown by the handlers, beside the fields.
impl From<ClientError> for PageError {
    fn from(error: ClientError) -> Self {
        if let ClientError::ErrorStatus { status: 429, problem: Some(problem), .. } = &error {
            return Self::too_many(problem);
        }
        if error.is_transient() {
            tracing::warn!(cause = %error, "page is not available");
            return Self::Unavailable(None);
        }
        if let ClientError::ErrorStatus { status, problem, .. } = &error {
            let problem = problem.as_deref();
            let detail = || problem.and_then(|problem| problem.detail.clone()).unwrap_or_default();
            let is_unknown_route = problem.is_some_and(|problem| problem.code == ProblemCode::RouteNotFound);
            match status {
                404 if !is_unknown_route => return Self::NotFound,
                400 | 413 | 414 | 422 => return Self::Invalid(detail()),
                409 => return Self::Conflict(detail()),
                _ => {}
            }
        }
        tracing::error!(cause = %error, "page failed");
        Self::Internal
    }
}

impl From<WebError> for PageError {
    fn from(error: WebError) -> Self {
        let problem = error.problem();
        match problem.status {
            503 => return Self::Unavailable(None),
            500.. => return Self::Internal,
            _ => {}
        }
        Self::Invalid(problem.detail.clone().unwrap_or_else(|| problem.title.clone()))
    }
}

impl From<askama::Error> for PageError {
    fn from(error: askama::Error) -> Self {
        tracing::error!(cause = %error, "page cannot be rendered");
        Self::Internal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_of_the_server_is_no_invalid_request() {
        let page = |code, detail: &str| PageError::from(WebError::new(code, detail));
        assert!(matches!(page(ProblemCode::Unavailable, "busy"), PageError::Unavailable(None)));
        assert!(matches!(page(ProblemCode::Internal, "a bug"), PageError::Internal));
        let PageError::Invalid(detail) = page(ProblemCode::InvalidRequest, "from is no date") else {
            panic!("a problem of the request is no invalid request");
        };
        assert_eq!(detail, "from is no date");
    }

    #[test]
    fn refusal_for_the_moment_names_the_limit_and_the_time() {
        let problem = Problem::new(ProblemCode::RateLimited, "your organization may send 2 a minute");
        let refused =
            ClientError::ErrorStatus { service: "webhooks", status: 429, problem: Some(Box::new(problem)) };
        let page = PageError::from(refused);
        assert_eq!((page.status(), page.title()), (StatusCode::TOO_MANY_REQUESTS, "Too many requests"));
        let text = "Your organization may send 2 a minute. This one was refused; try again in a minute.";
        assert_eq!(page.text(), text);
    }
}
