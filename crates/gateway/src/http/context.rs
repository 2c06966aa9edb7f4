//! What the handlers share.

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header::HOST;
use actix_web::web::Payload;
use assay_clients::Service;
use assay_contracts::fault::BodyError;
use assay_contracts::problem::ProblemCode;
use assay_platform::web::{
    BodyLimits, BodyMemory, HeldBody, LARGE_BODY, WebError, parse_body, read_held_body,
};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::app::{KeyRing, RateLimit};
use crate::config::Config;

/// The gateway's state: connections to the services, and limits.
pub(crate) struct Gateway {
    pub(crate) registry: Service,
    pub(crate) ingest: Service,
    pub(crate) scoring: Service,
    pub(crate) export: Service,
    /// None when there are no webhooks.
    pub(crate) webhooks: Option<Service>,
    pub(crate) keys: KeyRing,
    pub(crate) rate_limit: Option<RateLimit>,
    pub(crate) in_flight: Semaphore,
    pub(crate) body_memory: BodyMemory,
    /// Turns for checking large bodies, which takes memory and a processor.
    pub(crate) checking: Semaphore,
    pub(crate) config: Config,
}

impl Gateway {
    /// A place among the requests under way.
    pub(crate) fn admit(&self) -> Result<SemaphorePermit<'_>, WebError> {
        self.in_flight.try_acquire().map_err(|_| WebError::unavailable(&"too many requests under way"))
    }

    /// Refuses early what would find no place later. A place is taken only when the body has arrived: one that arrives
    /// slowly must not hold up work that can be done.
    pub(crate) fn check_room(&self) -> Result<(), WebError> {
        self.admit().map(drop)
    }

    /// Reads a body and checks it with `parse`, whose result the owning service will find out again: what is checked
    /// here never travels, what does not pass never reaches the services.
    pub(crate) async fn read_checked<T>(
        &self,
        request: &HttpRequest,
        payload: Payload,
        parse: fn(&[u8]) -> Result<T, BodyError>,
    ) -> Result<HeldBody, WebError>
    where
        T: Send + 'static,
    {
        let limits = BodyLimits {
            max_bytes: self.config.max_body_bytes,
            deadline: Duration::from_secs(self.config.body_deadline_seconds),
        };
        let body = read_held_body(request, payload, limits, &self.body_memory).await?;
        if body.len() > LARGE_BODY {
            // The semaphore is never closed. Small bodies are checked at once: they must not wait for large ones.
            let _turn = self.checking.acquire().await.map_err(|error| WebError::internal(&error))?;
            parse_body(&body, parse).await?;
        } else {
            parse_body(&body, parse).await?;
        }
        Ok(body)
    }

    /// The address that the client reached the gateway at: scheme and authority, without a slash at the end.
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

/// Copies some of the request's headers for a service; one that was sent more than once is the service's to refuse.
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

/// An id of a path; a text that is no id is not found, like an id that nobody has.
pub(crate) fn path_id<T: std::str::FromStr>(text: &str, not_found: ProblemCode) -> Result<T, WebError> {
    text.parse().map_err(|_| WebError::new(not_found, "there is none with this id in your organization"))
}

fn is_authority(host: &str) -> bool {
    !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte))
}
