//! The state of the handlers, and what they share.

use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::http::header::{HOST, RETRY_AFTER};
use assay_clients::ServiceClient;
use assay_contracts::problem::ProblemCode;
use assay_platform::web::{BodyBudget, WebError};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::Semaphore;

use crate::app::{ApiKeyCache, RateLimit, Refusals, ShareExhausted, Slots};
use crate::config::Config;

/// Suggested pause of a client whose organization uses its whole share of the slots for requests, in seconds.
const SHARE_RETRY_AFTER_SECONDS: &str = "1";

/// The gateway's state: connections to the services, and limits.
pub(crate) struct Gateway {
    pub(crate) registry: ServiceClient,
    pub(crate) ingest: ServiceClient,
    pub(crate) scoring: ServiceClient,
    pub(crate) export: ServiceClient,
    /// `None` when webhooks are turned off.
    pub(crate) webhooks: Option<ServiceClient>,
    /// `None` when there is no console.
    pub(crate) console: Option<ServiceClient>,
    pub(crate) keys: ApiKeyCache,
    pub(crate) rate_limit: Option<RateLimit>,
    /// Refused imports that are not reported to ingest yet.
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) in_flight: Slots,
    pub(crate) keyless_in_flight: Arc<Semaphore>,
    pub(crate) downloads: Slots,
    pub(crate) console_in_flight: Semaphore,
    /// Responses of the console that are being sent: a slow reader keeps its own in memory.
    pub(crate) console_responses: Arc<Semaphore>,
    /// For forms of the console, which need no key: they must not use up `body_budget`.
    pub(crate) form_budget: BodyBudget,
    pub(crate) body_budget: BodyBudget,
    pub(crate) config: Config,
}

impl Gateway {
    /// The public base URL: scheme and authority, without a trailing slash.
    pub(crate) fn public_base_url(&self, request: &HttpRequest) -> String {
        if !self.config.public_url.is_empty() {
            return self.config.public_url.trim_end_matches('/').to_owned();
        }
        let host = request
            .headers()
            .get(HOST)
            .and_then(|value| value.to_str().ok())
            .filter(|host| is_authority(host));
        match host {
            Some(host) => format!("http://{host}"),
            None => format!("http://{}", self.config.listen),
        }
    }
}

/// Copies request headers for a service, including repeated ones: the service decides whether to accept them.
pub(crate) fn copy_headers(request: &HttpRequest, names: &[&'static str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for name in names {
        for value in request.headers().get_all(*name) {
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                headers.append(HeaderName::from_static(name), value);
            }
        }
    }
    headers
}

/// A path of a service with the query of the request, which the service validates.
pub(crate) fn with_query(path: &str, request: &HttpRequest) -> String {
    match request.query_string() {
        "" => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}

/// Parses an id in the path. Text that is not an id is answered like an unknown id, with this code.
pub(crate) fn path_id<T: std::str::FromStr>(text: &str, code: ProblemCode) -> Result<T, WebError> {
    text.parse().map_err(|_| not_found(code))
}

/// The one answer for a missing, deleted or foreign ticket.
pub(crate) fn ticket_not_found() -> WebError {
    not_found(ProblemCode::TicketNotFound)
}

fn not_found(code: ProblemCode) -> WebError {
    WebError::new(code, "there is none with this id in your organization")
}

pub(super) fn too_many_in_flight() -> WebError {
    WebError::unavailable(&"too many requests in flight")
}

pub(super) fn share_exhausted(ShareExhausted(limit): ShareExhausted) -> WebError {
    let detail =
        format!("your organization has {limit} requests in flight: wait until a response has arrived");
    WebError::new(ProblemCode::RateLimited, detail).with_header(RETRY_AFTER, SHARE_RETRY_AFTER_SECONDS)
}

/// Whether a `Host` header has only characters of a host and a port.
fn is_authority(host: &str) -> bool {
    !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte))
}
