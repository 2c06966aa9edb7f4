//! A form whose request failed, because its session had ended or a service did not answer, is kept in a cookie of the browser until
//! its page is opened again, which shows it. More than a cookie holds is kept in hidden fields of the error page, whose button sends
//! them to [`REFILL_PATH`] to get the form again.

use actix_web::http::Method;
use actix_web::http::header::HeaderMap;
use actix_web::{HttpMessage, HttpRequest};

use super::form::Fields;
use super::viewer::{PublicAddress, read_cookie};
use crate::domain::KeptForm;

const COOKIE: &str = "assay-form";
const KEPT_SECONDS: i64 = 30 * 60;

/// Remembers the form while its request is handled, in case that this fails.
pub(crate) fn remember(form: Option<KeptForm>, request: &HttpRequest) {
    if let Some(form) = form {
        request.extensions_mut().insert(form);
    }
}

/// The form that the request has sent, if it was remembered.
pub(crate) fn sent_form(request: &HttpRequest) -> Option<KeptForm> {
    request.extensions().get::<KeptForm>().cloned()
}

/// Adds the cookie to a response, if it holds the form.
pub(crate) fn add_cookie(form: &KeptForm, request: &HttpRequest, headers: &mut HeaderMap) {
    if let Some(address) = form.cookie() {
        PublicAddress::of(request).set_cookie(headers, COOKIE, &address, KEPT_SECONDS);
    }
}

/// The kept fields of the form of the requested page.
pub(crate) fn kept_fields(request: &HttpRequest) -> Option<Fields> {
    match request.extensions().get::<RefillFields>() {
        Some(RefillFields(fields)) => Some(fields.clone()),
        None => fields_of_cookie(request),
    }
}

fn fields_of_cookie(request: &HttpRequest) -> Option<Fields> {
    let (path, typed) = read_cookie(request, COOKIE)?.split_once('?')?;
    let is_its_page = *request.method() == Method::GET && path == request.path();
    is_its_page.then(|| Fields::parse(typed.as_bytes()))
}

/// Removes the cookie if its page is the requested one.
pub(crate) fn remove_shown_cookie(request: &HttpRequest, headers: &mut HeaderMap) {
    if fields_of_cookie(request).is_some() {
        PublicAddress::of(request).set_cookie(headers, COOKIE, "", 0);
    }
}

/// The path to which hidden fields are sent to get their form again, followed by the path of its page without `/console`.
pub(crate) const REFILL_PATH: &str = "/console/typed";

/// The address that shows the form again with the fields that are sent to it.
pub(crate) fn refill_address(form: &KeptForm) -> String {
    format!("{REFILL_PATH}{}", form.path().strip_prefix("/console").unwrap_or_default())
}

/// The fields of a request that only asks for its form again.
struct RefillFields(Fields);

/// Sets the fields that the page of the form shows for this request.
pub(crate) fn refill(form: &KeptForm, request: &HttpRequest) {
    request.extensions_mut().insert(RefillFields(Fields::of(form.typed().clone())));
}
