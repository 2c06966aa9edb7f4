//! CSRF protection: a form is accepted only if a page of the same session sent it.

use actix_web::web::Payload;
use actix_web::{Error, FromRequest, HttpRequest, dev};
use futures_util::future::LocalBoxFuture;

use super::error::PageError;
use super::form::{Fields, read_same_origin_form};
use super::kept_form::remember;
use super::viewer::SessionRequest;
use crate::domain::KeptForm;

/// A form whose origin and CSRF token were checked.
pub(crate) struct CheckedForm {
    pub(crate) request: SessionRequest,
    pub(crate) fields: Fields,
}

impl FromRequest for CheckedForm {
    type Error = Error;
    type Future = LocalBoxFuture<'static, Result<Self, Error>>;

    fn from_request(request: &HttpRequest, payload: &mut dev::Payload) -> Self::Future {
        let (request, payload) = (request.clone(), Payload::from_request(request, payload));
        Box::pin(async move { Ok(read_session_form(&request, payload.await?).await?) })
    }
}

/// Reads a form, and keeps it in the error or with the request, so that its page can show it again.
///
/// # Errors
/// [`PageError::SignedOut`] without a session; [`PageError::CsrfRejected`] when another site sent it, or its CSRF token is not
/// that of the session; [`PageError::Invalid`] beyond the limits of forms.
async fn read_session_form(request: &HttpRequest, payload: Payload) -> Result<CheckedForm, PageError> {
    let session_request = SessionRequest::of(request).await;
    let fields = read_same_origin_form(request, payload).await?;
    let form = KeptForm::new(request.path(), fields.clone().into_pairs());
    match session_request {
        Ok(session_request) if session_request.viewer.has_form_token(fields.get("csrf")) => {
            // The handler may still fail because a service is down; then the page shows the form again.
            remember(form, request);
            Ok(CheckedForm { request: session_request, fields })
        }
        Ok(_) => Err(PageError::CsrfRejected(form)),
        Err(PageError::SignedOut(_)) => Err(PageError::SignedOut(form)),
        Err(error) => {
            remember(form, request);
            Err(error)
        }
    }
}
