//! HTTP responses with assertions.

use anyhow::{Context, Result, ensure};
use reqwest::header::HeaderMap;
use serde_json::Value;

/// A complete response.
#[derive(Debug)]
pub struct Reply {
    /// The request, for error messages.
    pub request_line: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Reply {
    /// A header's text; empty when it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The body as text, shortened, for messages.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).chars().take(1_500).collect()
    }

    /// The body as JSON; an error unless the status is as expected.
    pub fn expect(&self, status: u16) -> Result<Value> {
        self.expect_status(status)?;
        serde_json::from_slice(&self.body)
            .with_context(|| format!("{}: no JSON: {}", self.request_line, self.text()))
    }

    pub fn expect_status(&self, status: u16) -> Result<()> {
        ensure!(
            self.status == status,
            "{}: {} instead of {status}: {}",
            self.request_line,
            self.status,
            self.text()
        );
        Ok(())
    }

    /// Checks that the response is this problem, as a complete problem object (RFC 9457) without unknown members.
    pub fn problem(&self, status: u16, code: &str) -> Result<Value> {
        let problem = self.expect(status)?;
        let request_line = &self.request_line;
        ensure!(
            problem["code"] == code,
            "{request_line}: code {} instead of {code}: {problem}",
            problem["code"]
        );
        ensure!(
            self.header("content-type") == "application/problem+json",
            "{request_line}: content type {:?}",
            self.header("content-type")
        );
        ensure!(problem["status"] == status, "{request_line}: status in the body: {problem}");
        ensure!(
            problem["title"].as_str().is_some_and(|title| !title.is_empty()),
            "{request_line}: title: {problem}"
        );
        ensure!(problem["type"] == format!("urn:assay:problem:{code}"), "{request_line}: type: {problem}");
        let request_id = self.header("x-request-id");
        ensure!(
            !request_id.is_empty() && problem["request_id"] == request_id,
            "{request_line}: request id: {problem}"
        );
        let known = ["status", "title", "detail", "type", "code", "request_id", "errors", "ticket_id"];
        let unknown =
            problem.as_object().into_iter().flatten().find(|(name, _)| !known.contains(&name.as_str()));
        ensure!(unknown.is_none(), "{request_line}: unknown member {unknown:?}");
        Ok(problem)
    }

    /// Checks that the response is `invalid-request` with an error at `pointer`.
    pub fn error_at(&self, pointer: &str) -> Result<Value> {
        let problem = self.problem(400, "invalid-request")?;
        let errors = problem["errors"].as_array().with_context(|| format!("no errors: {problem}"))?;
        let complete =
            errors.iter().all(|error| error["detail"].as_str().is_some_and(|text| !text.is_empty()));
        ensure!(complete, "{}: an error without an explanation: {problem}", self.request_line);
        ensure!(
            errors.iter().any(|error| error["pointer"] == pointer),
            "{}: no error at {pointer:?}: {problem}",
            self.request_line
        );
        Ok(problem)
    }
}
