//! A single request to the endpoint, and the classification of its errors.

use std::error::Error;
use std::io;
use std::time::Duration;

use assay_platform::http_client::client_builder;
use chrono::{DateTime, Utc};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::config::{JudgeConfigError, Settings};

const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// Maximum length of a stored error message, in characters.
const MAX_MESSAGE_CHARS: usize = 300;

#[derive(Debug)]
pub(crate) struct Endpoint {
    http: Client,
}

/// A failed request. The text is safe to log: the error message of the endpoint is only in `message`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EndpointError {
    #[error("the host name cannot be resolved")]
    NameNotResolved,
    #[error("the connection was refused")]
    ConnectionRefused,
    #[error("no TLS connection: {0}")]
    Tls(String),
    #[error("no connection: {0}")]
    Connection(String),
    #[error("the connection was closed before the response was complete: {0}")]
    ConnectionClosed(String),
    #[error("the response is longer than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("it answers with status {status} and a redirect")]
    Redirect { status: u16, location: String },
    #[error("it answers with status {status}{}", code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default())]
    Status { status: u16, code: Option<String>, message: String, retry_after: Option<Duration> },
}

/// Codes for a prompt longer than the model's context: OpenAI's API and its copies, and llama.cpp's server.
const CONTEXT_EXCEEDED: [&str; 2] = ["context_length_exceeded", "exceed_context_size_error"];

impl Endpoint {
    pub(crate) fn open() -> Result<Self, JudgeConfigError> {
        let http = client_builder()
            .connect_timeout(CONNECT_DEADLINE)
            // A redirect could send the key and a transcript to a third party.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .user_agent(concat!("assay-judge/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| JudgeConfigError::Client(error.to_string()))?;
        Ok(Self { http })
    }

    /// Sends a request and reads the response up to the size limit.
    pub(crate) async fn post(&self, settings: &Settings, body: Vec<u8>) -> Result<Vec<u8>, EndpointError> {
        let json = HeaderValue::from_static("application/json");
        let mut request = self.http.post(settings.url.clone()).header(CONTENT_TYPE, json).body(body);
        if let Some(credentials) = credentials(&settings.key) {
            request = request.header(AUTHORIZATION, credentials);
        }
        let response = request.send().await.map_err(classify)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = read(response, settings.max_answer_bytes).await;
        if status.is_success() {
            return body;
        }
        Err(status_error(status, &headers, &body.unwrap_or_default()))
    }
}

/// The `Authorization` header; `JudgeConfig::check` has checked that the key is valid in it.
fn credentials(key: &SecretString) -> Option<HeaderValue> {
    let key = Some(key.expose_secret()).filter(|key| !key.is_empty())?;
    let mut credentials = HeaderValue::from_str(&format!("Bearer {key}")).ok()?;
    credentials.set_sensitive(true);
    Some(credentials)
}

async fn read(mut response: Response, limit: usize) -> Result<Vec<u8>, EndpointError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(classify)? {
        if body.len() + chunk.len() > limit {
            return Err(EndpointError::TooLarge { limit });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

impl EndpointError {
    /// Whether a retry of the same request may succeed.
    pub(crate) const fn is_temporary(&self) -> bool {
        match self {
            Self::NameNotResolved
            | Self::ConnectionRefused
            | Self::Connection(_)
            | Self::ConnectionClosed(_) => true,
            Self::Status { status, .. } => matches!(status, 408 | 425 | 429 | 500..=599),
            Self::Tls(_) | Self::TooLarge { .. } | Self::Redirect { .. } => false,
        }
    }

    /// Whether it is about this request alone: another conversation may succeed at the same moment.
    pub(crate) fn is_about_one_request(&self) -> bool {
        match self {
            Self::TooLarge { .. } | Self::Status { status: 413, .. } => true,
            Self::Status { code: Some(code), .. } => CONTEXT_EXCEEDED.contains(&code.as_str()),
            _ => false,
        }
    }

    /// Whether the endpoint may bill the request although its response is lost.
    pub(crate) const fn may_be_billed(&self) -> bool {
        matches!(self, Self::ConnectionClosed(_) | Self::TooLarge { .. })
    }

    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The status and the error message of the endpoint.
    pub(crate) fn status_and_message(&self) -> Option<(u16, &str)> {
        match self {
            Self::Status { status, message, .. } => Some((*status, message)),
            _ => None,
        }
    }
}

fn status_error(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> EndpointError {
    let header = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if status.is_redirection() {
        let location = header(LOCATION).unwrap_or("nowhere").to_owned();
        return EndpointError::Redirect { status: status.as_u16(), location };
    }
    let body_text = String::from_utf8_lossy(body);
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let pointers = ["/error/message", "/error", "/message", "/detail"];
    let message = pointers.iter().find_map(|pointer| json.pointer(pointer)?.as_str()).unwrap_or(&body_text);
    let code =
        ["/error/code", "/error/type", "/code"].iter().find_map(|pointer| json.pointer(pointer)?.as_str());
    EndpointError::Status {
        status: status.as_u16(),
        // Logged and from outside: only identifiers are accepted.
        code: code.filter(|code| is_identifier(code)).map(str::to_owned),
        message: message.chars().take(MAX_MESSAGE_CHARS).collect(),
        retry_after: header(RETRY_AFTER).and_then(|text| parse_retry_after(text, Utc::now())),
    }
}

fn is_identifier(code: &str) -> bool {
    !code.is_empty()
        && code.len() <= 64
        && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// `Retry-After` in either form (RFC 9110, section 10.2.3).
fn parse_retry_after(text: &str, now: DateTime<Utc>) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let moment = DateTime::parse_from_rfc2822(text).ok()?;
    Some((moment.with_timezone(&Utc) - now).to_std().unwrap_or_default())
}

/// Classifies an error by its chain of causes: the text of the HTTP client is only "error sending request". The URL is
/// removed, since its query may contain a key.
fn classify(error: reqwest::Error) -> EndpointError {
    let error = error.without_url();
    let mut root_cause = error.to_string();
    let mut is_tls = false;
    let mut cause: Option<&dyn Error> = error.source();
    while let Some(inner) = cause {
        root_cause = inner.to_string();
        if root_cause.starts_with("dns error") {
            return EndpointError::NameNotResolved;
        }
        if let Some(io) = inner.downcast_ref::<io::Error>() {
            if io.kind() == io::ErrorKind::ConnectionRefused {
                return EndpointError::ConnectionRefused;
            }
            // TLS errors are wrapped in an I/O error of this kind.
            is_tls |= io.kind() == io::ErrorKind::InvalidData && error.is_connect();
        }
        let lower = root_cause.to_lowercase();
        is_tls |=
            error.is_connect() && ["certificate", "tls", "handshake"].iter().any(|word| lower.contains(word));
        cause = inner.source();
    }
    if is_tls {
        EndpointError::Tls(root_cause)
    } else if error.is_connect() {
        EndpointError::Connection(root_cause)
    } else {
        EndpointError::ConnectionClosed(root_cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_as_seconds_or_date() {
        let now = DateTime::parse_from_rfc2822("Fri, 20 Nov 2026 10:00:00 GMT").unwrap().to_utc();
        let seconds = |text| parse_retry_after(text, now).map(|pause| pause.as_secs());
        assert_eq!(seconds("7"), Some(7));
        assert_eq!(seconds(" 0.5 "), Some(0));
        assert_eq!(seconds("Fri, 20 Nov 2026 10:01:30 GMT"), Some(90));
        assert_eq!(seconds("Fri, 20 Nov 2026 09:00:00 GMT"), Some(0));
        for text in ["", "-1", "soon", "inf"] {
            assert_eq!(seconds(text), None, "{text:?}");
        }
    }

    #[test]
    fn error_message_is_found_and_truncated() {
        let cases = [
            (
                r#"{"error":{"message":"no such model","code":"model_not_found"}}"#,
                "no such model",
                Some("model_not_found"),
            ),
            (r#"{"error":"no such model"}"#, "no such model", None),
            (r#"{"detail":"no such model","code":"key sk-1 is\nwrong"}"#, "no such model", None),
            ("no such model", "no such model", None),
        ];
        for (body, expected, expected_code) in cases {
            let error = status_error(StatusCode::NOT_FOUND, &HeaderMap::new(), body.as_bytes());
            let EndpointError::Status { status: 404, code, message, retry_after: None } = error else {
                panic!("{error:?}");
            };
            assert_eq!((message.as_str(), code.as_deref()), (expected, expected_code), "{body}");
        }
        let long = status_error(StatusCode::NOT_FOUND, &HeaderMap::new(), "x".repeat(10_000).as_bytes());
        assert_eq!(long.status_and_message().unwrap().1.len(), MAX_MESSAGE_CHARS);
    }
}
