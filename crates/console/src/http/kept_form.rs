//! What was typed into a form that was sent in vain, after its session had ended or while a service did not answer, is kept in a
//! cookie of the browser until the page of the form is opened again, which shows it. More than a cookie holds is kept in hidden
//! fields of the page that says so, whose button asks for the form again.

use actix_web::http::Method;
use actix_web::http::header::HeaderMap;
use actix_web::web::{Path, Payload};
use actix_web::{Error, FromRequest, HttpMessage, HttpRequest, HttpResponse, dev};
use futures_util::future::LocalBoxFuture;

use super::error::PageError;
use super::form::{Fields, read_same_origin_form};
use super::viewer::{PublicAddress, Visit, read_cookie};
use super::{agents, exports, keys, webhook, webhooks};
use crate::domain::{KeptForm, may_redirect_to};

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
    if let Some(Typed(fields)) = request.extensions().get::<Typed>() {
        return Some(fields.clone());
    }
    let (path, typed) = read_cookie(request, COOKIE)?.split_once('?')?;
    let is_here = *request.method() == Method::GET && path == request.path();
    is_here.then(|| Fields::parse(typed.as_bytes()))
}

/// Removes the cookie when its page is shown.
pub(crate) fn forget_shown(request: &HttpRequest, headers: &mut HeaderMap) {
    if kept_fields(request).is_some() {
        PublicAddress::of(request).set_cookie(headers, COOKIE, "", 0);
    }
}

/// The address, before that of the form's page without `/console`, to which hidden fields are sent.
const TYPED: &str = "/console/typed";

/// The address that shows a form again with what is sent to it.
pub(crate) fn typed_address(form: &KeptForm) -> String {
    format!("{TYPED}{}", form.path().strip_prefix("/console").unwrap_or_default())
}

/// The fields of a request that only asks for its form again.
struct Typed(Fields);

/// A request that asks for a form with these fields. It changes nothing, so it needs no token of a session, which may have begun
/// after the page with the fields.
pub(crate) struct TypedForm(Visit);

impl FromRequest for TypedForm {
    type Error = Error;
    type Future = LocalBoxFuture<'static, Result<Self, Error>>;

    fn from_request(request: &HttpRequest, payload: &mut dev::Payload) -> Self::Future {
        let (request, payload) = (request.clone(), Payload::from_request(request, payload));
        Box::pin(async move { Ok(read_typed_form(&request, payload.await?).await?) })
    }
}

async fn read_typed_form(request: &HttpRequest, payload: Payload) -> Result<TypedForm, PageError> {
    let path = format!("/console{}", request.path().strip_prefix(TYPED).unwrap_or_default());
    if !may_redirect_to(&path) {
        return Err(PageError::NotFound);
    }
    let fields = read_same_origin_form(request, payload).await?;
    let form = KeptForm::new(&path, fields.pairs());
    if let Some(form) = &form {
        request.extensions_mut().insert(Typed(Fields::of(form.typed().clone())));
    }
    // If there is no session, or a service does not answer, the fields are kept once more.
    remember(form, request);
    Ok(TypedForm(Visit::of(request).await?))
}

/// The page of a form with what was typed into it.
pub(crate) async fn show_typed(
    TypedForm(visit): TypedForm,
    page: Path<String>,
) -> Result<HttpResponse, PageError> {
    match page.as_str() {
        "agents" => agents::list(visit).await,
        "exports" => exports::list(visit).await,
        "keys" => keys::list(visit).await,
        "webhooks" => webhooks::list(visit).await,
        page => match page.strip_prefix("webhooks/") {
            Some(id) => webhook::show_webhook(visit, Path::from(id.to_owned())).await,
            None => Err(PageError::NotFound),
        },
    }
}
