//! What happens around every request: its id, its log line, and the limits of its head.

use std::time::Instant;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpResponse};
use assay_contracts::problem::ProblemCode;
use tracing::Instrument;

use super::error::WebError;
use super::unread_body::UnreadBody;
use crate::runtime::RequestContext;

/// Follows a request across services, and back to the client.
pub const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// W3C Trace Context.
pub const TRACEPARENT_HEADER: HeaderName = HeaderName::from_static("traceparent");

/// Bounds of a request's head, below those of the HTTP parser, so that the answer is a problem object.
const MAX_HEADER_BYTES: usize = 32 * 1024;
const MAX_URI_BYTES: usize = 8 * 1024;

/// Wrap an app with this as its outermost middleware: gives the request its context, checks the size of its head, and
/// logs one line about it when it is answered. Queries and bodies are never logged, nor the address itself: clients put
/// into it what they like. The route that it matches is.
pub async fn request_middleware(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let header = |name: &HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
    let context = RequestContext::from_headers(header(&REQUEST_ID_HEADER), header(&TRACEPARENT_HEADER));
    let request_id = context.request_id.clone();
    let span = tracing::info_span!(
        "request",
        request_id = %request_id,
        method = %request.method(),
        route = request.match_pattern().as_deref().unwrap_or("none"),
    );
    let handled = context.scope(handle(request, next).instrument(span)).await;
    let request_id = HeaderValue::from_str(&request_id).ok();
    match handled {
        Ok(mut response) => {
            request_id.map(|id| response.headers_mut().insert(REQUEST_ID_HEADER, id));
            Ok(response)
        }
        Err(mut response) => {
            request_id.map(|id| response.headers_mut().insert(REQUEST_ID_HEADER, id));
            Err(InternalError::from_response("refused by a middleware", *response).into())
        }
    }
}

/// An error of a middleware further in is answered here, while the request's context is at hand. It stays an error all
/// the same: a [`ServiceResponse`] needs the request, and routing panics on a request that somebody keeps a clone of.
async fn handle(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Box<HttpResponse>> {
    let began = Instant::now();
    let unread = UnreadBody::hold(&mut request);
    let handled = match check_head(&request) {
        Ok(()) => next.call(request).await.map(ServiceResponse::map_into_boxed_body),
        Err(error) => Ok(request.error_response(error)),
    };
    let answer = handled.map_err(|error| Box::new(error.error_response()));
    let status = match &answer {
        Ok(response) => response.status().as_u16(),
        Err(response) => response.status().as_u16(),
    };
    let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    if status >= 500 {
        tracing::warn!(status, milliseconds, "answered");
    } else {
        tracing::debug!(status, milliseconds, "answered");
    }
    let Some(unread) = unread else { return answer };
    match answer {
        Ok(response) => Ok(response.map_body(|_, body| unread.beside(body))),
        Err(response) => Err(Box::new(response.map_body(|_, body| unread.beside(body)))),
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
