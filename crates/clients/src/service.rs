//! HTTP client of one service: token, request id, trace, deadline and circuit breaker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_contracts::json::JsonFault;
use assay_contracts::problem::Problem;
use assay_platform::auth::{Audience, ServiceClaims, ServiceTokens};
use assay_platform::runtime::{RequestContext, now, timeout};
use assay_platform::telemetry::traces::{self, Span, SpanKind};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, RequestBuilder, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::circuit::{Circuit, REPORT_SLOW_CALL_AFTER};
use super::error::ClientError;
use super::http::HttpClient;
use super::metrics;

/// One request to a service.
pub struct Call<'a> {
    /// HTTP method.
    pub method: Method,
    /// Path and query, starting with `/`.
    pub path: &'a str,
    /// Additional headers.
    pub headers: HeaderMap,
    /// Body; JSON unless the headers name another type.
    pub body: Option<Bytes>,
}

/// Client of one service. Clones share state.
#[derive(Clone)]
pub struct ServiceClient {
    http: HttpClient,
    address: Url,
    audience: Audience,
    tokens: ServiceTokens,
    deadline: Duration,
    /// Limits concurrent calls; `None`: unlimited.
    permits: Option<Arc<Semaphore>>,
    circuit: Circuit,
}

impl ServiceClient {
    /// A client of `audience` at `address`. `deadline` applies to the head of each response and, where the client reads
    /// the body, separately to the body.
    pub fn new(
        http: HttpClient,
        address: Url,
        audience: Audience,
        tokens: ServiceTokens,
        deadline: Duration,
    ) -> Self {
        Self { http, address, audience, tokens, deadline, permits: None, circuit: Circuit::default() }
    }

    /// Limits concurrent calls; calls beyond the limit fail at once. So one slow service does not use the capacity that the
    /// caller needs for others.
    #[must_use]
    pub fn with_max_concurrent_calls(mut self, calls: usize) -> Self {
        self.permits = Some(Arc::new(Semaphore::new(calls)));
        self
    }

    /// Runs the circuit breaker: probes the service after failed calls, and lets calls fail at once while it is down. One
    /// task per service and process, in `Phase::Background`; without it calls wait for their deadlines. Ends with `stop`.
    pub async fn watch(self, stop: CancellationToken) {
        self.circuit.watch(self.name(), || self.probe(), &stop).await;
    }

    /// Name of the service, for logs.
    pub fn name(&self) -> &'static str {
        self.audience.as_str()
    }

    /// Sends a call and returns the response of any status. The deadline covers the head of the response; its body may be
    /// streamed.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] without a response in time, while the circuit is open, or at the limit of concurrent
    /// calls.
    pub fn send<'a>(
        &'a self,
        claims: &'a ServiceClaims,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Response, ClientError>> {
        // Boxed: compiled here, not in each crate that calls a service.
        Box::pin(self.trace_and_send(claims, call))
    }

    async fn trace_and_send(&self, claims: &ServiceClaims, call: Call<'_>) -> Result<Response, ClientError> {
        let began = Instant::now();
        let context = RequestContext::current();
        let mut span = self.span(context.as_ref(), &call.method);
        let sent = async {
            let _permit = self.admit()?;
            let request = self.request(claims, call, context.as_ref(), &span)?;
            self.await_response(request).await
        }
        .await;
        match &sent {
            Ok(response) => {
                span.set("http.response.status_code", i64::from(response.status().as_u16()));
                if response.status().is_server_error() {
                    span.fail("answered with a server error");
                }
            }
            Err(_) => span.fail("no response"),
        }
        metrics::record_call(self.name(), sent.as_ref().ok().map(Response::status), began.elapsed());
        sent
    }

    /// The span of a call. Background work (readiness, maintenance) starts no trace.
    fn span(&self, context: Option<&RequestContext>, method: &Method) -> Span {
        let parent = context.and_then(|context| context.traceparent.as_deref());
        let mut span = parent.map_or_else(Span::default, |parent| {
            traces::span(SpanKind::Client, Some(parent), || format!("{method} {}", self.name()))
        });
        span.set("http.request.method", method.to_string());
        span.set("peer.service", self.name());
        span
    }

    /// Lets a call pass, unless the circuit is open or too many calls are in flight.
    fn admit(&self) -> Result<Option<SemaphorePermit<'_>>, ClientError> {
        if self.circuit.is_open() {
            return Err(self.unreachable_because("its circuit is open"));
        }
        let permit = self.permits.as_ref().map(|permits| permits.try_acquire()).transpose();
        permit.map_err(|_| self.unreachable_because("too many concurrent calls"))
    }

    fn request(
        &self,
        claims: &ServiceClaims,
        call: Call<'_>,
        context: Option<&RequestContext>,
        span: &Span,
    ) -> Result<RequestBuilder, ClientError> {
        let url = self.url(call.path)?;
        let token =
            self.tokens.issue(self.audience, claims, now()).map_err(|error| self.invalid_request(&error))?;
        let has_content_type = call.headers.contains_key(CONTENT_TYPE);
        let mut request = self.http.for_current_thread()?.request(call.method, url).headers(call.headers);
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        if let Some(context) = context {
            request = request.header("x-request-id", &context.request_id);
            if let Some(traceparent) = span.traceparent().or_else(|| context.traceparent.clone()) {
                request = request.header("traceparent", traceparent);
            }
        }
        if let Some(body) = call.body {
            if !has_content_type {
                request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            }
            request = request.body(body);
        }
        Ok(request)
    }

    /// Awaits the head of the response; reports a slow or failed call to the circuit.
    async fn await_response(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let sending = request.send();
        tokio::pin!(sending);
        let slow_after = REPORT_SLOW_CALL_AFTER.min(self.deadline);
        let sent = match timeout(slow_after, &mut sending).await {
            Some(sent) => Some(sent),
            None => {
                self.circuit.report_failure();
                timeout(self.deadline.saturating_sub(slow_after), sending).await
            }
        };
        match sent {
            Some(Ok(response)) => {
                // Of any status: a service that is too busy for probes but responds to calls is alive.
                self.circuit.report_response(self.name());
                Ok(response)
            }
            Some(Err(error)) => {
                self.circuit.report_failure();
                Err(self.unreachable(error))
            }
            None => {
                Err(self.unreachable_because(&format!("no response within {} ms", self.deadline.as_millis())))
            }
        }
    }

    /// Whether `/healthz` has a response, of any status.
    async fn probe(&self) -> bool {
        let (Ok(url), Ok(http)) = (self.url("/healthz"), self.http.for_current_thread()) else {
            return false;
        };
        http.get(url).send().await.is_ok()
    }

    /// Posts `body` and decodes the response, which must be a success.
    ///
    /// # Errors
    /// [`ClientError`] when the service is unreachable, responds with an error, or the response cannot be decoded.
    pub async fn post_json<T: DeserializeOwned>(
        &self,
        claims: &ServiceClaims,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(|error| self.invalid_request(&JsonFault::of(&error)))?;
        let call = Call { method: Method::POST, path, headers: HeaderMap::new(), body: Some(body.into()) };
        self.decode(&self.send_and_read(claims, call).await?)
    }

    /// Gets `path` and decodes the response, which must be a success.
    ///
    /// # Errors
    /// As [`Self::post_json`].
    pub async fn get_json<T: DeserializeOwned>(
        &self,
        claims: &ServiceClaims,
        path: &str,
    ) -> Result<T, ClientError> {
        let call = Call { method: Method::GET, path, headers: HeaderMap::new(), body: None };
        self.decode(&self.send_and_read(claims, call).await?)
    }

    /// Sends a call and decodes the response, which must be a success.
    ///
    /// # Errors
    /// As [`Self::post_json`].
    pub async fn call_json<T: DeserializeOwned>(
        &self,
        claims: &ServiceClaims,
        call: Call<'_>,
    ) -> Result<T, ClientError> {
        self.decode(&self.send_and_read(claims, call).await?)
    }

    /// Sends a call and ignores the body of the response, which must be a success.
    ///
    /// # Errors
    /// When the service is unreachable or responds with an error.
    pub async fn call_ignoring_body(
        &self,
        claims: &ServiceClaims,
        call: Call<'_>,
    ) -> Result<(), ClientError> {
        self.send_and_read(claims, call).await.map(|_| ())
    }

    /// Checks the readiness of the service.
    ///
    /// # Errors
    /// When it is unreachable or not ready.
    pub async fn ready(&self) -> Result<(), ClientError> {
        let url = self.url("/readyz")?;
        let sent = timeout(self.deadline, self.http.for_current_thread()?.get(url).send()).await;
        if matches!(sent, Some(Ok(_))) {
            // Otherwise calls could fail on an open circuit right after the service was reported ready.
            self.circuit.report_response(self.name());
        }
        match sent {
            Some(Ok(response)) if response.status().is_success() => Ok(()),
            Some(Ok(response)) => Err(ClientError::ErrorStatus {
                service: self.name(),
                status: response.status().as_u16(),
                problem: None,
            }),
            Some(Err(error)) => Err(self.unreachable(error)),
            None => Err(self.unreachable_because("no response in time")),
        }
    }

    /// The body of a successful response.
    fn send_and_read<'a>(
        &'a self,
        claims: &'a ServiceClaims,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Bytes, ClientError>> {
        Box::pin(async move { self.read_body(self.trace_and_send(claims, call).await?).await })
    }

    async fn read_body(&self, response: Response) -> Result<Bytes, ClientError> {
        let status = response.status();
        let body = match timeout(self.deadline, response.bytes()).await {
            Some(Ok(body)) => body,
            Some(Err(error)) => return Err(self.unreachable(error)),
            None => return Err(self.unreachable_because("the response body did not arrive in time")),
        };
        if !status.is_success() {
            let problem = serde_json::from_slice::<Problem>(&body).ok().map(Box::new);
            return Err(ClientError::ErrorStatus { service: self.name(), status: status.as_u16(), problem });
        }
        Ok(body)
    }

    fn decode<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, ClientError> {
        serde_json::from_slice(body).map_err(|error| self.invalid_response(&JsonFault::of(&error)))
    }

    fn url(&self, path: &str) -> Result<Url, ClientError> {
        // Not `join`: a path that starts with `//` would change the host.
        let text = format!("{}{path}", self.address.as_str().trim_end_matches('/'));
        Url::parse(&text).map_err(|error| self.invalid_request(&error))
    }

    /// The error without its URL: the text is logged, and the query may have a signature.
    fn unreachable(&self, error: reqwest::Error) -> ClientError {
        let error = error.without_url();
        let source =
            std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        ClientError::Unreachable { service: self.name(), reason: format!("{error}{source}") }
    }

    fn unreachable_because(&self, reason: &str) -> ClientError {
        ClientError::Unreachable { service: self.name(), reason: reason.to_owned() }
    }

    fn invalid_request(&self, error: &dyn std::fmt::Display) -> ClientError {
        ClientError::InvalidRequest { service: self.name(), reason: error.to_string() }
    }

    fn invalid_response(&self, error: &dyn std::fmt::Display) -> ClientError {
        ClientError::InvalidResponse { service: self.name(), reason: error.to_string() }
    }
}
