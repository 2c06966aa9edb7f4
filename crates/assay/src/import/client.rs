//! Sending one line, as often as it takes.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use backon::{BackoffBuilder, ExponentialBuilder};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use url::Url;

use super::lines::Line;

/// Longest wait that a server may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);
const REQUEST_DEADLINE: Duration = Duration::from_secs(60);

/// A gateway and the key for it.
pub struct Client {
    destination: String,
    http: reqwest::Client,
    url: String,
    attempts: u16,
}

/// What the gateway said, for good.
pub enum Answer {
    /// Created or accepted.
    Accepted,
    /// It exists already.
    Duplicate,
    /// It will never be accepted as it is.
    Refused(Refusal),
}

/// Why a line was refused.
#[derive(Debug, Serialize)]
pub struct Refusal {
    status: u16,
    #[serde(skip_serializing_if = "Value::is_null")]
    code: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    detail: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    errors: Value,
}

impl Refusal {
    /// In a line.
    pub fn describe(&self) -> String {
        format!("{} {}", self.status, self.detail.as_str().unwrap_or("without an explanation"))
    }
}

impl Client {
    /// For the gateway at `url`.
    pub fn new(url: &Url, key: &str, attempts: u16) -> Result<Self> {
        let mut credentials = HeaderValue::from_str(&format!("Bearer {key}")).context("the API key")?;
        credentials.set_sensitive(true);
        let headers = HeaderMap::from_iter([
            (AUTHORIZATION, credentials),
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        ]);
        let http = reqwest::Client::builder()
            .default_headers(headers)
            .timeout(REQUEST_DEADLINE)
            .connect_timeout(Duration::from_secs(5))
            .user_agent(concat!("assay-import/", env!("CARGO_PKG_VERSION")))
            .build()?;
        let url = url.as_str().trim_end_matches('/').to_owned();
        let digest = Sha256::digest(format!("{url}\n{key}").as_bytes());
        let destination = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { destination, http, url, attempts })
    }

    /// SHA-256 of the address and the key, lower-case hexadecimal.
    pub fn destination(&self) -> &str {
        &self.destination
    }

    /// Sends a line until there is an answer that counts.
    ///
    /// A busy or absent service is asked again, after as long as it says (`Retry-After`) or else after a growing pause.
    /// A refused key ends the import: no other line would fare better. `run` names the import: the same line of the
    /// same import is answered once, that of a later import anew.
    pub async fn send(&self, path: &str, run: &str, line: &Line) -> Result<Answer> {
        let key = format!("assay-import-{run}-{}-{}", line.number, line.fingerprint());
        let mut pauses = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(Duration::from_millis(200))
            .with_max_delay(Duration::from_secs(15))
            .with_max_times(usize::from(self.attempts) - 1)
            .build();
        loop {
            let (problem, asked_pause) = match self.try_send(path, &key, line).await {
                Ok(response) if is_temporary(response.status()) => {
                    (format!("the service answered {}", response.status()), retry_after(&response))
                }
                Ok(response) => return read_answer(response).await,
                Err(error) => (format!("{error:#}"), None),
            };
            let Some(pause) = pauses.next() else {
                bail!("{problem} ({} attempts)", self.attempts);
            };
            tokio::time::sleep(asked_pause.unwrap_or(pause)).await;
        }
    }

    async fn try_send(&self, path: &str, key: &str, line: &Line) -> Result<Response> {
        let request = self
            .http
            .post(format!("{}{path}", self.url))
            .header("idempotency-key", key)
            .body(line.body.clone());
        request.send().await.with_context(|| format!("{} cannot be reached", self.url))
    }
}

fn is_temporary(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
}

/// Seconds to wait (RFC 9110, section 10.2.3); the form with a date is not used by this service.
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}

async fn read_answer(response: Response) -> Result<Answer> {
    let status = response.status();
    if status.is_success() {
        return Ok(Answer::Accepted);
    }
    let body = response.bytes().await.unwrap_or_default();
    let mut problem: Value = serde_json::from_slice(&body).unwrap_or_default();
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        bail!("{}", problem["detail"].as_str().unwrap_or("the API key was refused"));
    }
    if matches!(problem["code"].as_str(), Some("duplicate-import" | "duplicate-agent")) {
        return Ok(Answer::Duplicate);
    }
    Ok(Answer::Refused(Refusal {
        status: status.as_u16(),
        code: problem["code"].take(),
        detail: problem["detail"].take(),
        errors: problem["errors"].take(),
    }))
}
