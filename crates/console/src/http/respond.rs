//! Responses: rendered pages, compressed, and the headers of every response.

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, LOCATION, VARY,
};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpRequest, HttpResponse};
use askama::Template;
use assay_platform::runtime::RequestContext;
use assay_platform::web::add_page_headers;
use flate2::Compression;

use super::Console;
use super::assets::{accepts_gzip, gzip};
use super::error::PageError;
use super::kept_form::{add_cookie, refill_address, remove_shown_cookie, sent_form};
use super::shell::{NO_SECTION, Shell};
use super::viewer::SessionRequest;
use crate::domain::{KeptForm, Pairs};

/// A smaller page is sent uncompressed.
const MIN_COMPRESSED_BYTES: usize = 1_024;

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
        // Pages hold customers' texts: no cache may keep them, nor may the back button show them after signing out.
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header((VARY, "accept-encoding, cookie, hx-request"));
    if html.len() >= MIN_COMPRESSED_BYTES
        && accepts_gzip(request)
        && let Some(compressed) = gzip(html.as_bytes(), Compression::default())
    {
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
    /// The page of the form, if a cookie keeps the form for it.
    form: Option<&'a str>,
    /// The fields of the form, if a cookie cannot hold them, and the address to which they are sent to get the form again.
    typed: Option<(&'a Pairs, String)>,
    must_sign_in: bool,
    /// The id to search the log for; only for errors that are logged.
    request_id: Option<String>,
}

/// The middleware of all routes: adds the headers, and renders the page of an error.
pub(crate) async fn finish(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let mut response = next.call(request).await?.map_into_boxed_body();
    let error = response.response().error().and_then(PageError::of);
    let error = error.map(|error| error.with_form(sent_form(response.request())));
    if let Some(error) = error
        && let Some(mut rendered) = error_page(response.request(), &error).await
    {
        if let Some(allow) = response.headers().get(ALLOW) {
            rendered.headers_mut().insert(ALLOW, allow.clone());
        }
        if let Some(form) = error.kept_form() {
            add_cookie(form, response.request(), rendered.headers_mut());
        }
        response = response.into_response(rendered);
    } else if response.status().is_success() {
        let request = response.request().clone();
        remove_shown_cookie(&request, response.headers_mut());
    }
    add_page_headers(response.headers_mut());
    Ok(response)
}

async fn error_page(request: &HttpRequest, error: &PageError) -> Option<HttpResponse> {
    let (kept, must_sign_in) = (error.kept_form(), matches!(error, PageError::SignedOut(_)));
    let fits_cookie = |form: &&KeptForm| form.cookie().is_some();
    let (in_cookie, in_page) = (kept.filter(fits_cookie), kept.filter(|form| !fits_cookie(form)));
    if must_sign_in && in_page.is_none() {
        return Some(redirect_to_sign_in(request, in_cookie));
    }
    let console = request.app_data::<Data<Console>>()?;
    let session_request = match error {
        // The unavailable service may be agent-registry, which knows the session.
        PageError::Unavailable(_) | PageError::SignedOut(_) => None,
        _ => SessionRequest::of(request).await.ok(),
    };
    let shell = match session_request {
        Some(request) => Shell::new(&request, NO_SECTION, error.title()),
        None => Shell::signed_out(request, console, error.title()),
    };
    // To the gateway 401 means that its own token was refused.
    let status = if must_sign_in { StatusCode::FORBIDDEN } else { error.status() };
    let is_logged = status.is_server_error();
    let request_id = RequestContext::current().filter(|_| is_logged).map(|context| context.request_id);
    let template = ErrorPage {
        shell,
        text: error.text(),
        form: in_cookie.map(KeptForm::path),
        typed: in_page.map(|form| (form.typed(), refill_address(form))),
        must_sign_in,
        request_id,
    };
    page(request, status, &template).ok()
}

/// Redirects to the sign-in form. htmx would put the form into a part of the page, so it is told to load it as a page. The
/// status is not 401, because to the gateway that means that its own token was refused.
fn redirect_to_sign_in(request: &HttpRequest, form: Option<&KeptForm>) -> HttpResponse {
    let here = request.uri().path_and_query().map(|path| path.as_str()).unwrap_or_default();
    let back = match *request.method() {
        actix_web::http::Method::GET => here,
        _ => form.map_or("/console", KeptForm::path),
    };
    let address =
        format!("/console/sign-in?{}", assay_contracts::evaluations::encode_query([("back", back)]));
    if request.headers().contains_key("hx-request") {
        return HttpResponse::Forbidden()
            .insert_header((HeaderName::from_static("hx-redirect"), address))
            .insert_header((CACHE_CONTROL, "no-store"))
            .finish();
    }
    redirect(&address)
}
