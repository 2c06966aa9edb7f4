//! Forms of a session: refused unless a page of the same session sent them.

use actix_web::web::Payload;
use actix_web::{Error, FromRequest, HttpRequest, dev};
use futures_util::future::LocalBoxFuture;

use super::error::PageError;
use super::form::{Fields, read_same_origin_form};
use super::kept_form::remember;
use super::viewer::Visit;
use crate::domain::KeptForm;

/// A form that a page of the same session sent.
pub(crate) struct SentForm {
    pub(crate) visit: Visit,
    pub(crate) fields: Fields,
}

impl FromRequest for SentForm {
    type Error = Error;
    type Future = LocalBoxFuture<'static, Result<Self, Error>>;

    fn from_request(request: &HttpRequest, payload: &mut dev::Payload) -> Self::Future {
        let (request, payload) = (request.clone(), Payload::from_request(request, payload));
        Box::pin(async move { Ok(read_session_form(&request, payload.await?).await?) })
    }
}

/// Reads a form.
///
/// # Errors
/// [`PageError::SignedOut`] without a session; [`PageError::ForeignForm`] when another site sent it, or it does not have the
/// session's token. In both cases, and when a service does not answer, what was typed is kept for the form's page, unless another
/// site sent it.
async fn read_session_form(request: &HttpRequest, payload: Payload) -> Result<SentForm, PageError> {
    let visit = Visit::of(request).await;
    let fields = read_same_origin_form(request, payload).await?;
    let form = KeptForm::new(request.path(), fields.clone().pairs());
    match visit {
        Ok(visit) if visit.viewer.has_form_token(fields.get("csrf")) => {
            remember(form, request);
            Ok(SentForm { visit, fields })
        }
        Ok(_) => Err(PageError::ForeignForm(form)),
        Err(PageError::SignedOut(_)) => Err(PageError::SignedOut(form)),
        Err(error) => {
            remember(form, request);
            Err(error)
        }
    }
}
