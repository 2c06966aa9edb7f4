//! Middleware of every request: request id, log line, trace span, metrics, and limits of the request head.

use std::fmt::{Display, Formatter};
use std::time::Instant;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::Method;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpResponse};
use assay_contracts::problem::ProblemCode;
use tracing::Instrument;

use super::error::WebError;
use super::held_value::hold_until_sent;
use super::read_ahead::ReadAhead;
use super::unread_body::UnreadBody;
use crate::runtime::RequestContext;
use crate::telemetry::metrics;
use crate::telemetry::traces::{self, SpanKind};

/// Request id, passed on to other services and returned to the client.
pub const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// W3C Trace Context.
pub const TRACEPARENT_HEADER: HeaderName = HeaderName::from_static("traceparent");

/// The server that received a request; a process may have several.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServedBy {
    pub(super) server: &'static str,
    /// [`super::ServerSettings::is_public`].
    pub(super) is_public: bool,
}

/// Limits of a request head, below those of the HTTP parser, so that the response is a problem object.
const MAX_HEADER_BYTES: usize = 32 * 1024;
const MAX_URI_BYTES: usize = 8 * 1024;

/// Renders refusals of a request head as pages, for paths that people open in a browser. Where it returns `None`, and in an app without
/// it, they are problem objects. It belongs into the data of the app, because a refused head reaches no route.
#[derive(Debug, Clone, Copy)]
pub struct RefusedHeadPage(pub fn(path: &str, error: &WebError) -> Option<HttpResponse>);

/// The outermost middleware of an app: sets the request context, checks the size of the head, and logs one line per
/// response. It logs the matched route, never the path, query or body, which may hold personal data.
pub async fn request_middleware(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let in_progress = ReadAhead::begin(&mut request);
    let header = |name: &HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
    let mut context = RequestContext::from_headers(header(&REQUEST_ID_HEADER), header(&TRACEPARENT_HEADER));
    if request.app_data::<ServedBy>().is_some_and(|server| server.is_public) {
        context.traceparent = context.traceparent.as_deref().map(traces::with_own_sampling);
    }
    let labels = RouteLabels::of(&request);
    let mut trace_span =
        traces::span(SpanKind::Server, context.traceparent.as_deref(), || labels.to_string());
    if let Some(traceparent) = trace_span.traceparent() {
        context.traceparent = Some(traceparent);
    }
    let request_id = context.request_id.clone();
    let log_span = tracing::info_span!(
        "request",
        request_id = %request_id,
        trace_id = context.trace_id(),
        method = %request.method(),
        route = labels.route,
    );
    let began = Instant::now();
    let handled = context.scope(handle(request, next, began).instrument(log_span)).await;
    let status = match &handled {
        Ok(response) => response.status().as_u16(),
        Err(response) => response.status().as_u16(),
    };
    trace_span.set("http.request.method", labels.method);
    trace_span.set("http.response.status_code", i64::from(status));
    if status >= 500 {
        trace_span.fail("answered with a server error");
    }
    metrics::record_request(labels.server, labels.method, labels.route, status, began.elapsed());
    let request_id = HeaderValue::from_str(&request_id).ok();
    let until_sent = |body| match in_progress {
        Some(in_progress) => in_progress.until_sent(body),
        None => body,
    };
    match handled {
        Ok(mut response) => {
            request_id.map(|id| response.headers_mut().insert(REQUEST_ID_HEADER, id));
            Ok(response.map_body(|_, body| until_sent(body)))
        }
        Err(mut response) => {
            request_id.map(|id| response.headers_mut().insert(REQUEST_ID_HEADER, id));
            let response = response.map_body(|_, body| until_sent(body));
            Err(InternalError::from_response("refused by a middleware", response).into())
        }
    }
}

/// Turns an error of an inner middleware into a response while the request context is set. It is returned as an error
/// nevertheless: a [`ServiceResponse`] needs the request, and routing panics when the request has another clone.
async fn handle(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
    began: Instant,
) -> Result<ServiceResponse<BoxBody>, Box<HttpResponse>> {
    let unread = UnreadBody::hold(&mut request);
    let handled = match check_head(&request) {
        Ok(()) => next.call(request).await.map(ServiceResponse::map_into_boxed_body),
        Err(error) => Ok(refuse_head(request, error)),
    };
    let response = handled.map_err(|error| Box::new(error.error_response()));
    let status = match &response {
        Ok(response) => response.status().as_u16(),
        Err(response) => response.status().as_u16(),
    };
    let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    if status >= 500 {
        tracing::warn!(status, milliseconds, "answered");
    } else {
        tracing::debug!(status, milliseconds, "answered");
    }
    let Some(unread) = unread else { return response };
    match response {
        Ok(response) => Ok(response.map_body(|_, body| hold_until_sent(body, unread))),
        Err(response) => Err(Box::new(response.map_body(|_, body| hold_until_sent(body, unread)))),
    }
}

/// Metric labels of a request. Bounded in number, whatever clients send.
struct RouteLabels {
    server: &'static str,
    method: &'static str,
    route: String,
}

impl RouteLabels {
    fn of(request: &ServiceRequest) -> Self {
        let method = match *request.method() {
            Method::GET => "GET",
            Method::HEAD => "HEAD",
            Method::POST => "POST",
            Method::PUT => "PUT",
            Method::PATCH => "PATCH",
            Method::DELETE => "DELETE",
            Method::OPTIONS => "OPTIONS",
            // OpenTelemetry semantic conventions.
            _ => "_OTHER",
        };
        Self {
            server: request.app_data::<ServedBy>().map_or("unnamed", |by| by.server),
            method,
            route: request.match_pattern().unwrap_or_else(|| "none".to_owned()),
        }
    }
}

impl Display for RouteLabels {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.method, self.route)
    }
}

fn refuse_head(request: ServiceRequest, error: WebError) -> ServiceResponse<BoxBody> {
    let page = request.app_data::<RefusedHeadPage>().and_then(|render| (render.0)(request.path(), &error));
    match page {
        Some(page) => request.into_response(page),
        None => request.error_response(error),
    }
}

fn check_head(request: &ServiceRequest) -> Result<(), WebError> {
    if request.uri().to_string().len() > MAX_URI_BYTES {
        return Err(WebError::new(
            ProblemCode::UriTooLong,
            format!("an address may have at most {MAX_URI_BYTES} bytes"),
        ));
    }
    let bytes: usize = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes > MAX_HEADER_BYTES {
        return Err(WebError::new(
            ProblemCode::HeadersTooLarge,
            format!("the headers may have at most {MAX_HEADER_BYTES} bytes"),
        ));
    }
    Ok(())
}
