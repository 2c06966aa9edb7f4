//! `/console`: the pages of the role console, which signs people in itself. The gateway adds its own token and the public
//! address, and passes on only the headers that pages need.

use std::time::Duration;

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use assay_contracts::internal::PUBLIC_BASE_URL_HEADER;
use assay_platform::auth::ServiceClaims;
use assay_platform::web::{BodyLimits, FORM_CONTENT_TYPE, WebError, read_form};
use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

use super::context::{Gateway, copy_headers};
use crate::app::{Forward, forward_page as send};

/// The largest form has some names, an address and a filter.
const FORM_LIMITS: BodyLimits = BodyLimits { max_bytes: 64 * 1024, deadline: Duration::from_secs(10) };

const PASSED_HEADERS: [&str; 11] = [
    "accept-encoding",
    "cookie",
    "hx-request",
    "hx-target",
    "if-none-match",
    "origin",
    "sec-fetch-dest",
    "sec-fetch-mode",
    "sec-fetch-site",
    "sec-purpose",
    "user-agent",
];

/// A page or a file of the console.
pub(crate) async fn forward_page(
    request: HttpRequest,
    gateway: Data<Gateway>,
) -> Result<HttpResponse, WebError> {
    forward(&request, &gateway, None).await
}

/// A form of the console.
pub(crate) async fn forward_form(
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
) -> Result<HttpResponse, WebError> {
    let body = read_form(&request, payload, FORM_LIMITS).await?;
    forward(&request, &gateway, Some(body)).await
}

async fn forward(
    request: &HttpRequest,
    gateway: &Gateway,
    body: Option<Bytes>,
) -> Result<HttpResponse, WebError> {
    let busy = |_| WebError::unavailable(&"too many requests for the console in flight");
    let _slot = gateway.console_in_flight.try_acquire().map_err(busy)?;
    let Some(console) = &gateway.console else {
        return Err(WebError::internal(&"a route of the console without the console"));
    };
    let mut headers: HeaderMap = copy_headers(request, &PASSED_HEADERS);
    if let Ok(base) = HeaderValue::from_str(&gateway.public_base_url(request)) {
        headers.insert(PUBLIC_BASE_URL_HEADER, base);
    }
    if body.is_some() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(FORM_CONTENT_TYPE));
    }
    let method = match *request.method() {
        actix_web::http::Method::POST => reqwest::Method::POST,
        actix_web::http::Method::HEAD => reqwest::Method::HEAD,
        _ => reqwest::Method::GET,
    };
    let path = match request.query_string() {
        "" => request.path().to_owned(),
        query => format!("{}?{query}", request.path()),
    };
    let claims = &ServiceClaims::Service;
    send(Forward { service: console, claims, method, path: &path, headers, body }).await
}
