//! Error responses (RFC 9457), with advice for the user.

use std::fmt::Write;

use reqwest::{Response, StatusCode};
use serde::Deserialize;
use serde_json::Value;

/// An error response. Everything but the status may be missing: a proxy in between has its own error pages.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Problem {
    #[serde(skip)]
    pub status: StatusCode,
    pub title: Option<String>,
    pub code: Option<String>,
    pub detail: Option<String>,
    pub errors: Option<Value>,
    pub request_id: Option<String>,
}

impl Problem {
    pub async fn read(response: Response) -> Self {
        let status = response.status();
        let body = response.bytes().await.unwrap_or_default();
        Self { status, ..serde_json::from_slice(&body).unwrap_or_default() }
    }

    pub fn has_code(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    /// Whether every request with this API key would fail. `invalid-signature` refuses a download address, not a key.
    pub fn is_key_rejected(&self) -> bool {
        matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
            && !self.has_code("invalid-signature")
    }

    pub fn into_error(self) -> anyhow::Error {
        anyhow::anyhow!(self.describe())
    }

    /// One line: what happened, the invalid fields, and what to do.
    pub fn describe(&self) -> String {
        let reason = self.status.canonical_reason().unwrap_or("without a reason");
        let message = self.detail.as_deref().or(self.title.as_deref()).unwrap_or(reason);
        let mut text = format!("{message} ({})", self.status.as_u16());
        for error in self.errors.as_ref().and_then(Value::as_array).into_iter().flatten() {
            let (pointer, detail) = (&error["pointer"], &error["detail"]);
            let _ = write!(text, "; {} {}", pointer.as_str().unwrap_or(""), detail.as_str().unwrap_or(""));
        }
        if let Some(advice) = self.advice() {
            let _ = write!(text, ": {advice}");
        }
        if let (true, Some(id)) = (self.status.is_server_error(), &self.request_id) {
            let _ = write!(text, "; the operator finds the cause in the service's log under {id}");
        }
        text
    }

    fn advice(&self) -> Option<&'static str> {
        match self.status {
            StatusCode::UNAUTHORIZED => Some(
                "the API key was refused; `assay keys create --organization NAME` makes one (of a standalone: with \
                 --data-dir FOLDER), ASSAY_API_KEY or --key names it",
            ),
            StatusCode::FORBIDDEN if self.has_code("missing-scope") => {
                Some("`assay keys create --organization NAME --scopes …` makes a key that may")
            }
            // Also the answer without a valid key and for a ticket of another organization, which must not be revealed.
            StatusCode::NOT_FOUND if self.has_code("ticket-not-found") => {
                Some("is it the id of the receipt, and does the API key belong to the ticket's organization?")
            }
            StatusCode::NOT_FOUND if self.code.is_none() => {
                Some("this is no gateway of Assay: does --url or ASSAY_URL name the right address?")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problem(status: u16, body: Value) -> Problem {
        let status = StatusCode::from_u16(status).unwrap();
        Problem { status, ..serde_json::from_value(body).unwrap() }
    }

    #[test]
    fn problem_description_has_message_and_advice() {
        let cases = [
            (
                401,
                json!({"code": "unauthorized", "detail": "no such key"}),
                "no such key (401): the API key was refused",
            ),
            (
                403,
                json!({"code": "missing-scope", "detail": "scope `x`"}),
                "scope `x` (403): `assay keys create",
            ),
            (404, json!({}), "Not Found (404): this is no gateway of Assay"),
            (
                404,
                json!({"code": "ticket-not-found", "title": "There is no such ticket"}),
                "There is no such ticket (404): is",
            ),
            (
                500,
                json!({"detail": "x", "request_id": "r-1"}),
                "x (500); the operator finds the cause in the service's log under r-1",
            ),
            (
                400,
                json!({"detail": "x", "errors": [{"pointer": "/kind", "detail": "must be"}]}),
                "x (400); /kind must be",
            ),
        ];
        for (status, body, beginning) in cases {
            let text = problem(status, body).describe();
            assert!(text.starts_with(beginning), "{text}");
        }
    }
}
