//! What was typed into a form that was sent in vain, after its session had ended or while a service did not answer, is kept in a
//! cookie of the browser until the page of the form is opened again, which shows it. More than a cookie holds is kept in hidden
//! fields of the page that says so, whose button asks for the form again.

use actix_web::http::Method;
use actix_web::http::header::HeaderMap;
use actix_web::{HttpMessage, HttpRequest};

use super::form::Fields;
use super::viewer::{PublicAddress, read_cookie};
use crate::domain::KeptForm;

const COOKIE: &str = "assay-form";
const KEPT_SECONDS: i64 = 30 * 60;

/// Remembers the form while the request is handled, for the case that it is sent in vain.
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
pub(crate) fn keep(form: &KeptForm, request: &HttpRequest, headers: &mut HeaderMap) {
    if let Some(address) = form.cookie() {
        PublicAddress::of(request).set_cookie(headers, COOKIE, &address, KEPT_SECONDS);
    }
}

/// What was typed into the form of the requested page when it was sent in vain.
pub(crate) fn kept_fields(request: &HttpRequest) -> Option<Fields> {
    match request.extensions().get::<Typed>() {
        Some(Typed(fields)) => Some(fields.clone()),
        None => fields_of_cookie(request),
    }
}

fn fields_of_cookie(request: &HttpRequest) -> Option<Fields> {
    let (path, typed) = read_cookie(request, COOKIE)?.split_once('?')?;
    let is_here = *request.method() == Method::GET && path == request.path();
    is_here.then(|| Fields::parse(typed.as_bytes()))
}

/// Removes the cookie when its page is shown.
pub(crate) fn forget_shown(request: &HttpRequest, headers: &mut HeaderMap) {
    if fields_of_cookie(request).is_some() {
        PublicAddress::of(request).set_cookie(headers, COOKIE, "", 0);
    }
}

/// The address to which hidden fields are sent, before that of the form's page without `/console`.
pub(crate) const TYPED: &str = "/console/typed";

/// The address that shows a form again with what is sent to it.
pub(crate) fn typed_address(form: &KeptForm) -> String {
    format!("{TYPED}{}", form.path().strip_prefix("/console").unwrap_or_default())
}

/// The fields of a request that only asks for its form again.
struct Typed(Fields);

/// Takes a form for the page that shows it again.
pub(crate) fn show_again(form: &KeptForm, request: &HttpRequest) {
    request.extensions_mut().insert(Typed(Fields::of(form.typed().clone())));
}
