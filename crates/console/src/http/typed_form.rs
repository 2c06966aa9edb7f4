//! Shows a form again with what was typed into it, which the page of an error has in hidden fields.

use actix_web::web::{Path, Payload};
use actix_web::{Error, FromRequest, HttpRequest, HttpResponse, dev};
use futures_util::future::LocalBoxFuture;

use super::error::PageError;
use super::form::read_same_origin_form;
use super::kept_form::{TYPED, remember, show_again};
use super::viewer::Visit;
use super::{agents, exports, keys, webhook, webhooks};
use crate::domain::{KeptForm, may_redirect_to};

/// A request that asks for a form with its fields. It changes nothing, so it needs no token of a session, which may have begun after
/// the page with the fields.
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
        show_again(form, request);
    }
    // If there is no session, or a service does not answer, the fields are kept once more.
    remember(form, request);
    Ok(TypedForm(Visit::of(request).await?))
}

/// The page of the form.
pub(crate) async fn show(TypedForm(visit): TypedForm, page: Path<String>) -> Result<HttpResponse, PageError> {
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
