//! Responses: rendered pages, compressed, and the headers of every response.

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, VARY,
};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpRequest, HttpResponse};
use askama::Template;
use flate2::Compression;

use super::Console;
use super::assets::{accepts_gzip, gzip};
use super::error::PageError;
use super::shell::Shell;

/// Nothing from another host, nothing inline, no frames.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A smaller page is sent as it is.
const MIN_COMPRESSED: usize = 1_024;

/// Renders a page.
///
/// # Errors
/// When the template fails.
pub(crate) fn page(
    request: &HttpRequest,
    status: StatusCode,
    template: &impl Template,
) -> Result<HttpResponse, PageError> {
    let html = template.render()?;
    let mut response = HttpResponse::build(status);
    response
        .insert_header((CONTENT_TYPE, "text/html; charset=utf-8"))
        // Pages show customers' words: they stay neither in caches nor, after signing out, behind the back button.
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header((VARY, "accept-encoding, cookie, hx-request"));
    if html.len() >= MIN_COMPRESSED && accepts_gzip(request) {
        let compressed = gzip(html.as_bytes(), Compression::fast());
        return Ok(response.insert_header((CONTENT_ENCODING, "gzip")).body(compressed));
    }
    Ok(response.body(html))
}

/// 303: get another page, after a form or without a session.
pub(crate) fn redirect(path: &str) -> HttpResponse {
    HttpResponse::SeeOther()
        .insert_header((LOCATION, path))
        .insert_header((CACHE_CONTROL, "no-store"))
        .finish()
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    shell: Shell,
    text: &'a str,
}

/// The middleware of all routes: adds the headers, and renders the page of an error.
pub(crate) async fn finish(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let mut response = next.call(request).await?.map_into_boxed_body();
    let error = response.response().error().and_then(|error| error.as_error::<PageError>());
    if let Some(rendered) = error.and_then(|error| error_page(response.request(), error)) {
        response = response.into_response(rendered);
    }
    secure(response.headers_mut());
    Ok(response)
}

fn error_page(request: &HttpRequest, error: &PageError) -> Option<HttpResponse> {
    if matches!(error, PageError::SignedOut) {
        return Some(to_sign_in(request));
    }
    let console = request.app_data::<Data<Console>>()?;
    let shell = Shell::signed_out(request, console, error.title());
    let text = error.text();
    page(request, error.status(), &ErrorPage { shell, text }).ok()
}

/// A part of a page cannot be replaced by the form that signs in, so the script is told to load that.
fn to_sign_in(request: &HttpRequest) -> HttpResponse {
    let here = request.uri().path_and_query().map(|path| path.as_str()).unwrap_or_default();
    let back = match *request.method() {
        actix_web::http::Method::GET => here,
        _ => "/console",
    };
    let address =
        format!("/console/sign-in?{}", assay_contracts::evaluations::encode_query([("back", back)]));
    if request.headers().contains_key("hx-request") {
        return HttpResponse::Unauthorized()
            .insert_header((HeaderName::from_static("hx-redirect"), address))
            .insert_header((CACHE_CONTROL, "no-store"))
            .finish();
    }
    redirect(&address)
}

fn secure(headers: &mut HeaderMap) {
    for (name, value) in [
        ("content-security-policy", CONTENT_SECURITY_POLICY),
        ("x-content-type-options", "nosniff"),
        // Our own forms send their origin; others learn nothing.
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}
