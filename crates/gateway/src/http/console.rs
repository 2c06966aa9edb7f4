//! `/console`: the pages of the role console, which signs people in itself. The gateway adds its own token and the public
//! address, and passes on only the headers that pages need.

use std::sync::Arc;
use std::time::Duration;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::{Method, header};
use actix_web::middleware::Next;
use actix_web::web::{Data, Payload};
use actix_web::{Error, HttpRequest, HttpResponse, ResponseError as _};
use assay_contracts::internal::PUBLIC_BASE_URL_HEADER;
use assay_contracts::problem::{Problem, ProblemCode};
use assay_platform::auth::ServiceClaims;
use assay_platform::web::{
    BodyLimits, FORM_CONTENT_TYPE, WebError, add_page_headers, hold_until_sent, read_form,
};
use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

use super::context::{Gateway, copy_headers, with_query};
use crate::app::{ServiceCall, forward_page as forward_to_console};

/// Enough for the largest form, which has some names, an address and a filter.
const FORM_LIMITS: BodyLimits = BodyLimits { max_bytes: 64 * 1024, deadline: Duration::from_secs(10) };

const HTML: &str = "text/html; charset=utf-8";

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

/// The middleware of these routes: adds the headers of pages to every answer, and turns a problem of the gateway into a page,
/// because people read it.
pub(crate) async fn as_page(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let is_form = *request.method() == Method::POST;
    let mut response = next.call(request).await?.map_into_boxed_body();
    let error = response.response().error().and_then(|error| error.as_error::<WebError>());
    if let Some(text) = error.map(|error| problem_page(error.problem(), is_form)) {
        response = response.map_body(|_, _| BoxBody::new(text));
        response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(HTML));
    }
    add_page_headers(response.headers_mut());
    Ok(response)
}

/// The page for a request whose head is refused before it reaches a route; `None` for paths that have no pages.
pub(crate) fn page_of_refused_head(path: &str, error: &WebError) -> Option<HttpResponse> {
    let rest = path.strip_prefix("/console")?;
    if !(rest.is_empty() || rest.starts_with('/')) {
        return None;
    }
    let is_form = false;
    let mut response = error.error_response().set_body(BoxBody::new(problem_page(error.problem(), is_form)));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(HTML));
    add_page_headers(response.headers_mut());
    Some(response)
}

/// The page of a problem. It has no style: the file with the style of the other pages may be unreachable, too.
fn problem_page(problem: &Problem, is_form: bool) -> String {
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let (title, detail) = (escape(&problem.title), escape(problem.detail.as_deref().unwrap_or_default()));
    let advice = advice(problem.code, is_form);
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title} · Assay</title>\
         <h1>{title}</h1><p>{detail}</p>{advice}<p><a href=\"/console\">Go to the console</a></p></html>"
    )
}

/// What a person can do about a problem, as HTML; empty where its texts say it.
const fn advice(code: ProblemCode, is_form: bool) -> &'static str {
    match code {
        ProblemCode::UriTooLong => {
            "<p>What you typed is in the address: go back and leave some values of the filter out.</p>"
        }
        ProblemCode::HeadersTooLarge => "<p>Delete the cookies of this site and sign in again.</p>",
        ProblemCode::Unavailable | ProblemCode::RequestTimeout if is_form => {
            "<p>Your browser still has what you typed: see in another tab whether it was done all the same, and reload this \
             page to send it again if not.</p>"
        }
        _ => "",
    }
}

pub(crate) async fn forward_page(
    request: HttpRequest,
    gateway: Data<Gateway>,
) -> Result<HttpResponse, WebError> {
    forward(&request, &gateway, None).await
}

pub(crate) async fn forward_form(
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
) -> Result<HttpResponse, WebError> {
    let body = read_form(&request, payload, FORM_LIMITS, &gateway.form_budget).await?;
    forward(&request, &gateway, Some(Bytes::clone(&body))).await
}

async fn forward(
    request: &HttpRequest,
    gateway: &Gateway,
    body: Option<Bytes>,
) -> Result<HttpResponse, WebError> {
    if has_dot_segments(request.path()) {
        return Err(WebError::new(ProblemCode::RouteNotFound, "there is no such page"));
    }
    let busy = |_| WebError::unavailable(&"too many requests for the console in flight");
    let _slot = gateway.console_in_flight.try_acquire().map_err(busy)?;
    let response_slot = Arc::clone(&gateway.console_responses).try_acquire_owned().map_err(busy)?;
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
        Method::POST => reqwest::Method::POST,
        Method::HEAD => reqwest::Method::HEAD,
        _ => reqwest::Method::GET,
    };
    let path = with_query(request.path(), request);
    let claims = &ServiceClaims::Service;
    let call = ServiceCall { service: console, claims, method, path: &path, headers, body };
    let response = forward_to_console(call).await?;
    Ok(response.map_body(|_, body| hold_until_sent(body, response_slot)))
}

/// Whether a path has a segment `.` or `..`, encoded or not, or a `\`, which URL parsers read as `/`. The HTTP client resolves
/// such segments when it calls the console, so that the path could lead out of `/console`.
fn has_dot_segments(path: &str) -> bool {
    let is_dots =
        |segment: &str| matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    path.contains('\\') || path.split('/').any(is_dots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_segments_are_found_in_every_encoding() {
        for path in [
            "/console",
            "/console/keys",
            "/console/..x",
            "/console/assets/console.0a.css",
            "/console/%2E%2Ex",
        ] {
            assert!(!has_dot_segments(path), "{path}");
        }
        for path in [
            "/console/..",
            "/console/../x",
            "/console/%2e%2e/x",
            "/console/.%2E/x",
            "/console/%2E",
            "/console/./keys",
            "/console/..\\x",
        ] {
            assert!(has_dot_segments(path), "{path}");
        }
    }

    #[test]
    fn problem_page_escapes_its_texts() {
        let problem = Problem::new(ProblemCode::RouteNotFound, "<b>&");
        let page = problem_page(&problem, false);
        assert!(page.contains("<p>&lt;b>&amp;</p>"), "{page}");
    }
}
