//! One of our services, as seen from another.

use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_contracts::problem::Problem;
use assay_platform::auth::{Audience, ServiceClaims, ServiceTokens};
use assay_platform::runtime::{BoxError, RequestContext, now, within};
use assay_platform::telemetry::traces::{self, Span, SpanKind};
use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, RequestBuilder, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::circuit::{Circuit, SUSPICIOUS_AFTER};
use super::error::ClientError;
use super::http::HttpClient;
use super::metrics;

/// One call.
pub struct Call<'a> {
    /// HTTP method.
    pub method: Method,
    /// Path and query below the service's address, beginning with `/`.
    pub path: &'a str,
    /// Headers beside those that every call has.
    pub headers: HeaderMap,
    /// Body, sent as JSON.
    pub body: Option<Bytes>,
}

/// One of our services.
#[derive(Clone)]
pub struct Service {
    http: HttpClient,
    address: Url,
    audience: Audience,
    tokens: ServiceTokens,
    deadline: Duration,
    /// For calls that wait for an answer; none: as many as there are.
    places: Option<Arc<Semaphore>>,
    circuit: Circuit,
}

impl Service {
    /// The service for `audience` at `address`; every call must be answered within `deadline`.
    pub fn new(
        http: HttpClient,
        address: Url,
        audience: Audience,
        tokens: ServiceTokens,
        deadline: Duration,
    ) -> Self {
        Self { http, address, audience, tokens, deadline, places: None, circuit: Circuit::default() }
    }

    /// With so many calls waiting for an answer at the same time at most; more fail at once. So one service that is slow
    /// does not take all the room from the others.
    #[must_use]
    pub fn with_calls_at_most(mut self, calls: usize) -> Self {
        self.places = Some(Arc::new(Semaphore::new(calls)));
        self
    }

    /// Finds out, whenever a call is not answered, whether the service is dead; as long as it is, calls fail at once. One
    /// task for each service and process, of `Phase::Relay`; without it calls wait for their deadlines.
    ///
    /// # Errors
    /// None at present: it ends with `stop`.
    pub async fn watch(self, stop: CancellationToken) -> Result<(), BoxError> {
        self.circuit.watch(self.name(), || self.is_alive(), &stop).await;
        Ok(())
    }

    /// Its name, for logs.
    pub fn name(&self) -> &'static str {
        self.audience.as_str()
    }

    /// Sends a call and answers whatever the service says, errors included. The deadline holds until the head of the
    /// answer is there; its body may be streamed.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] when there is no answer in time, when the service was found dead, or when too many
    /// calls wait for it.
    pub async fn send(&self, claims: &ServiceClaims, call: Call<'_>) -> Result<Response, ClientError> {
        let began = Instant::now();
        let sent = self.send_traced(claims, call).await;
        metrics::called(self.name(), sent.as_ref().ok().map(Response::status), began.elapsed());
        sent
    }

    async fn send_traced(&self, claims: &ServiceClaims, call: Call<'_>) -> Result<Response, ClientError> {
        let context = RequestContext::current();
        let parent = context.as_ref().and_then(|context| context.traceparent.as_deref());
        // Work that nobody asked for (readiness, housekeeping) is no trace of its own.
        let mut span = parent.map_or_else(Span::default, |parent| {
            traces::span(SpanKind::Client, Some(parent), || format!("{} {}", call.method, self.name()))
        });
        span.set("http.request.method", call.method.to_string());
        span.set("peer.service", self.name());
        let traceparent = span.traceparent().or_else(|| parent.map(str::to_owned));
        let request_id = context.as_ref().map(|context| context.request_id.as_str());
        let sent = self.send_within(claims, call, request_id, traceparent).await;
        match &sent {
            Ok(response) => {
                span.set("http.response.status_code", i64::from(response.status().as_u16()));
                if response.status().is_server_error() {
                    span.fail("answered with a server error");
                }
            }
            Err(_) => span.fail("not answered"),
        }
        sent
    }

    async fn send_within(
        &self,
        claims: &ServiceClaims,
        call: Call<'_>,
        request_id: Option<&str>,
        traceparent: Option<String>,
    ) -> Result<Response, ClientError> {
        if self.circuit.is_open() {
            return Err(self.unreachable_because("it was found dead a moment ago"));
        }
        let _place = match self.places.as_ref().map(|places| places.try_acquire()) {
            Some(Err(_)) => return Err(self.unreachable_because("too many calls wait for its answer")),
            Some(Ok(place)) => Some(place),
            None => None,
        };
        let url = self.url(call.path)?;
        let token =
            self.tokens.issue(self.audience, claims, now()).map_err(|error| self.unreadable(&error))?;
        let mut request = self.http.of_this_thread()?.request(call.method, url).headers(call.headers);
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        if let Some(request_id) = request_id {
            request = request.header("x-request-id", request_id);
        }
        if let Some(traceparent) = traceparent {
            request = request.header("traceparent", traceparent);
        }
        if let Some(body) = call.body {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body);
        }
        self.answer(request).await
    }

    /// The head of the answer; that it is late or does not come raises a suspicion.
    async fn answer(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let sending = request.send();
        tokio::pin!(sending);
        let early = SUSPICIOUS_AFTER.min(self.deadline);
        let answer = match within(early, &mut sending).await {
            Some(answer) => Some(answer),
            None => {
                self.circuit.suspect();
                within(self.deadline.saturating_sub(early), sending).await
            }
        };
        match answer {
            Some(Ok(response)) => {
                // Whatever it says: a service that is too busy to say that it is alive, and answers, is alive.
                self.circuit.answered(self.name());
                Ok(response)
            }
            Some(Err(error)) => {
                self.circuit.suspect();
                Err(self.unreachable(error))
            }
            None => {
                Err(self.unreachable_because(&format!("no answer within {} ms", self.deadline.as_millis())))
            }
        }
    }

    /// Whether there is an answer to the question for liveness, whatever it says.
    async fn is_alive(&self) -> bool {
        let (Ok(url), Ok(http)) = (self.url("/healthz"), self.http.of_this_thread()) else { return false };
        http.get(url).send().await.is_ok()
    }

    /// Sends `body` and reads the answer, which must be a success.
    ///
    /// # Errors
    /// [`ClientError`] when the service cannot be reached, refuses, or answers something unreadable.
    pub async fn post_json<T: DeserializeOwned>(
        &self,
        claims: &ServiceClaims,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(|error| self.unreadable(&error))?;
        let call = Call { method: Method::POST, path, headers: HeaderMap::new(), body: Some(body.into()) };
        self.read_json(self.send(claims, call).await?).await
    }

    /// Reads an answer, which must be a success.
    ///
    /// # Errors
    /// As [`Self::post_json`].
    pub async fn get_json<T: DeserializeOwned>(
        &self,
        claims: &ServiceClaims,
        path: &str,
    ) -> Result<T, ClientError> {
        let call = Call { method: Method::GET, path, headers: HeaderMap::new(), body: None };
        self.read_json(self.send(claims, call).await?).await
    }

    /// Whether the service says that it is ready.
    ///
    /// # Errors
    /// When it cannot be reached or is not.
    pub async fn ready(&self) -> Result<(), ClientError> {
        let url = self.url("/readyz")?;
        let sent = within(self.deadline, self.http.of_this_thread()?.get(url).send()).await;
        if matches!(sent, Some(Ok(_))) {
            // Nobody must be told that the service is ready, and then be refused because it was not.
            self.circuit.answered(self.name());
        }
        match sent {
            Some(Ok(response)) if response.status().is_success() => Ok(()),
            Some(Ok(response)) => Err(ClientError::Refused {
                service: self.name(),
                status: response.status().as_u16(),
                problem: None,
            }),
            Some(Err(error)) => Err(self.unreachable(error)),
            None => Err(self.unreachable_because("no answer in time")),
        }
    }

    async fn read_json<T: DeserializeOwned>(&self, response: Response) -> Result<T, ClientError> {
        let status = response.status();
        let body = match within(self.deadline, response.bytes()).await {
            Some(Ok(body)) => body,
            Some(Err(error)) => return Err(self.unreachable(error)),
            None => {
                return Err(self.unreachable_because("the answer did not arrive in time"));
            }
        };
        if !status.is_success() {
            let problem = serde_json::from_slice::<Problem>(&body).ok().map(Box::new);
            return Err(ClientError::Refused { service: self.name(), status: status.as_u16(), problem });
        }
        serde_json::from_slice(&body).map_err(|error| self.unreadable(&error))
    }

    fn url(&self, path: &str) -> Result<Url, ClientError> {
        // Not `join`: a path that begins with `//` would name another host.
        let text = format!("{}{path}", self.address.as_str().trim_end_matches('/'));
        Url::parse(&text).map_err(|error| self.unreadable(&error))
    }

    /// Without the address: its query may hold a signature, and the text goes into logs.
    fn unreachable(&self, error: reqwest::Error) -> ClientError {
        let error = error.without_url();
        let source =
            std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        ClientError::Unreachable { service: self.name(), reason: format!("{error}{source}") }
    }

    fn unreachable_because(&self, reason: &str) -> ClientError {
        ClientError::Unreachable { service: self.name(), reason: reason.to_owned() }
    }

    fn unreadable(&self, error: &dyn std::fmt::Display) -> ClientError {
        ClientError::Unreadable { service: self.name(), reason: error.to_string() }
    }
}
