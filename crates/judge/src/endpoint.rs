//! One request to the endpoint, and what is wrong with it when there is no good answer.

use std::error::Error;
use std::io;
use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use url::Url;

use crate::config::{JudgeConfigError, Settings};

/// How long connecting may take.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// Bytes at most of an explanation that is kept.
const EXPLANATION: usize = 300;

/// Where completions are asked for.
#[derive(Debug)]
pub(crate) struct Endpoint {
    http: Client,
    url: Url,
    key: SecretString,
    max_answer_bytes: usize,
}

/// There is no good answer. The text names no contents and fits a log; what the endpoint said for itself is in `said`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EndpointError {
    #[error("the host name cannot be resolved")]
    Name,
    #[error("the connection was refused")]
    ConnectionRefused,
    #[error("no TLS connection: {0}")]
    Tls(String),
    #[error("no connection: {0}")]
    Connection(String),
    #[error("the connection was closed before the answer was complete: {0}")]
    Cut(String),
    #[error("the answer is longer than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("it answers with status {status} and a redirect")]
    Redirect { status: u16, location: String },
    #[error("it answers with status {status}{}", code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default())]
    Status { status: u16, code: Option<String>, said: String, retry_after: Option<Duration> },
}

impl Endpoint {
    pub(crate) fn open(settings: &Settings) -> Result<Self, JudgeConfigError> {
        let http = Client::builder()
            .connect_timeout(CONNECT_DEADLINE)
            // A redirect could carry the key and a transcript to anybody.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .user_agent(concat!("assay-judge/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| JudgeConfigError::Client(error.to_string()))?;
        Ok(Self {
            http,
            url: settings.url.clone(),
            key: settings.key.clone(),
            max_answer_bytes: settings.max_answer_bytes,
        })
    }

    /// Sends a body and reads the whole answer, as far as the limit allows.
    pub(crate) async fn post(&self, body: Vec<u8>) -> Result<Vec<u8>, EndpointError> {
        let json = HeaderValue::from_static("application/json");
        let mut request = self.http.post(self.url.clone()).header(CONTENT_TYPE, json).body(body);
        if let Some(credentials) = self.credentials() {
            request = request.header(AUTHORIZATION, credentials);
        }
        let response = request.send().await.map_err(describe)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = self.read(response).await;
        if status.is_success() {
            return body;
        }
        Err(refusal(status, &headers, &body.unwrap_or_default()))
    }

    /// The key was checked to fit a header.
    fn credentials(&self) -> Option<HeaderValue> {
        let key = Some(self.key.expose_secret()).filter(|key| !key.is_empty())?;
        let mut credentials = HeaderValue::from_str(&format!("Bearer {key}")).ok()?;
        credentials.set_sensitive(true);
        Some(credentials)
    }

    async fn read(&self, mut response: Response) -> Result<Vec<u8>, EndpointError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(describe)? {
            if body.len() + chunk.len() > self.max_answer_bytes {
                return Err(EndpointError::TooLarge { limit: self.max_answer_bytes });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

impl EndpointError {
    /// Whether the same request may succeed soon without anybody mending anything.
    pub(crate) const fn is_temporary(&self) -> bool {
        match self {
            Self::Name | Self::ConnectionRefused | Self::Connection(_) | Self::Cut(_) => true,
            Self::Status { status, .. } => matches!(status, 408 | 425 | 429 | 500..=599),
            Self::Tls(_) | Self::TooLarge { .. } | Self::Redirect { .. } => false,
        }
    }

    /// Whether the endpoint may have worked, and bill it, although its answer is lost.
    pub(crate) const fn may_cost(&self) -> bool {
        matches!(self, Self::Cut(_) | Self::TooLarge { .. })
    }

    /// How long the endpoint asks to be left alone.
    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The status and what the endpoint said about it.
    pub(crate) fn status(&self) -> Option<(u16, &str)> {
        match self {
            Self::Status { status, said, .. } => Some((*status, said)),
            _ => None,
        }
    }
}

fn refusal(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> EndpointError {
    let text_of = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if status.is_redirection() {
        let location = text_of(LOCATION).unwrap_or("nowhere").to_owned();
        return EndpointError::Redirect { status: status.as_u16(), location };
    }
    let body_text = String::from_utf8_lossy(body);
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let places = ["/error/message", "/error", "/message", "/detail"];
    let said = places.iter().find_map(|place| json.pointer(place)?.as_str()).unwrap_or(&body_text);
    let code = ["/error/code", "/error/type", "/code"].iter().find_map(|place| json.pointer(place)?.as_str());
    EndpointError::Status {
        status: status.as_u16(),
        // Goes into logs, and comes from outside: only what looks like a name.
        code: code.filter(|code| is_name(code)).map(str::to_owned),
        said: said.chars().take(EXPLANATION).collect(),
        retry_after: text_of(RETRY_AFTER).and_then(|text| pause(text, Utc::now())),
    }
}

fn is_name(code: &str) -> bool {
    !code.is_empty()
        && code.len() <= 64
        && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// `Retry-After` in either form (RFC 9110, section 10.2.3).
fn pause(text: &str, now: DateTime<Utc>) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let moment = DateTime::parse_from_rfc2822(text).ok()?;
    Some((moment.with_timezone(&Utc) - now).to_std().unwrap_or_default())
}

/// What went wrong on the way, from the chain of causes: the client's own text says no more than "error sending request".
/// Without the address: some are asked with a key in their query.
fn describe(error: reqwest::Error) -> EndpointError {
    let error = error.without_url();
    let mut deepest = error.to_string();
    let mut is_tls = false;
    let mut cause: Option<&dyn Error> = error.source();
    while let Some(inner) = cause {
        deepest = inner.to_string();
        if deepest.starts_with("dns error") {
            return EndpointError::Name;
        }
        if let Some(io) = inner.downcast_ref::<io::Error>() {
            if io.kind() == io::ErrorKind::ConnectionRefused {
                return EndpointError::ConnectionRefused;
            }
            // A TLS fault travels as the inner error of an I/O error of this kind.
            is_tls |= io.kind() == io::ErrorKind::InvalidData && error.is_connect();
        }
        let lower = deepest.to_lowercase();
        is_tls |=
            error.is_connect() && ["certificate", "tls", "handshake"].iter().any(|word| lower.contains(word));
        cause = inner.source();
    }
    if is_tls {
        EndpointError::Tls(deepest)
    } else if error.is_connect() {
        EndpointError::Connection(deepest)
    } else {
        EndpointError::Cut(deepest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_read_in_seconds_and_as_a_date() {
        let now = DateTime::parse_from_rfc2822("Fri, 20 Nov 2026 10:00:00 GMT").unwrap().to_utc();
        let seconds = |text| pause(text, now).map(|pause| pause.as_secs());
        assert_eq!(seconds("7"), Some(7));
        assert_eq!(seconds(" 0.5 "), Some(0));
        assert_eq!(seconds("Fri, 20 Nov 2026 10:01:30 GMT"), Some(90));
        assert_eq!(seconds("Fri, 20 Nov 2026 09:00:00 GMT"), Some(0));
        for text in ["", "-1", "soon", "inf"] {
            assert_eq!(seconds(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_explanation_is_found_in_the_usual_places_and_kept_short() {
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
            let error = refusal(StatusCode::NOT_FOUND, &HeaderMap::new(), body.as_bytes());
            let EndpointError::Status { status: 404, code, said, retry_after: None } = error else {
                panic!("{error:?}");
            };
            assert_eq!((said.as_str(), code.as_deref()), (expected, expected_code), "{body}");
        }
        let long = refusal(StatusCode::NOT_FOUND, &HeaderMap::new(), "x".repeat(10_000).as_bytes());
        assert_eq!(long.status().unwrap().1.len(), EXPLANATION);
    }
}
