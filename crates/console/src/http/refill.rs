//! Shows a form again with the fields that an error page has kept hidden.

use actix_web::web::{Path, Payload};
use actix_web::{Error, FromRequest, HttpRequest, HttpResponse, dev};
use futures_util::future::LocalBoxFuture;

use super::error::PageError;
use super::form::read_same_origin_form;
use super::kept_form::{REFILL_PATH, refill, remember};
use super::viewer::SessionRequest;
use super::{agents, exports, keys, webhook, webhooks};
use crate::domain::{KeptForm, may_redirect_to};

/// A request for a form with these fields. It changes nothing, so it needs no CSRF token: the session may have begun after the error
/// page was sent.
pub(crate) struct RefillRequest(SessionRequest);

impl FromRequest for RefillRequest {
    type Error = Error;
    type Future = LocalBoxFuture<'static, Result<Self, Error>>;

    fn from_request(request: &HttpRequest, payload: &mut dev::Payload) -> Self::Future {
        let (request, payload) = (request.clone(), Payload::from_request(request, payload));
        Box::pin(async move { Ok(read_refill_request(&request, payload.await?).await?) })
    }
}

async fn read_refill_request(request: &HttpRequest, payload: Payload) -> Result<RefillRequest, PageError> {
    let path = format!("/console{}", request.path().strip_prefix(REFILL_PATH).unwrap_or_default());
    if !may_redirect_to(&path) {
        return Err(PageError::NotFound);
    }
    let fields = read_same_origin_form(request, payload).await?;
    let form = KeptForm::new(&path, fields.into_pairs());
    if let Some(form) = &form {
        refill(form, request);
    }
    // If this request fails, too, the fields are kept once more.
    remember(form, request);
    Ok(RefillRequest(SessionRequest::of(request).await?))
}

/// The page of the form.
pub(crate) async fn show(
    RefillRequest(request): RefillRequest,
    page: Path<String>,
) -> Result<HttpResponse, PageError> {
    match page.as_str() {
        "agents" => agents::list(request).await,
        "exports" => exports::list(request).await,
        "keys" => keys::list(request).await,
        "webhooks" => webhooks::list(request).await,
        page => match page.strip_prefix("webhooks/") {
            Some(id) => webhook::show_webhook(request, Path::from(id.to_owned())).await,
            None => Err(PageError::NotFound),
        },
    }
}
