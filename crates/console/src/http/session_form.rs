//! Forms of a session: refused unless a page of the same session sent them.

use actix_web::HttpRequest;
use actix_web::web::Payload;

use super::Console;
use super::error::PageError;
use super::form::{Fields, read_same_origin_form};
use super::kept_form::remember;
use super::viewer::Viewer;
use crate::domain::KeptForm;

/// Who sent a form, and its fields.
///
/// # Errors
/// [`PageError::SignedOut`] without a session; [`PageError::ForeignForm`] when another site sent it, or it does not have the
/// session's token. In both cases, and when a service does not answer, what was typed is kept for the form's page, unless another
/// site sent it.
pub(crate) async fn read_session_form(
    request: &HttpRequest,
    payload: Payload,
    console: &Console,
) -> Result<(Viewer, Fields), PageError> {
    let viewer = Viewer::of(request, console).await;
    let fields = read_same_origin_form(request, payload).await?;
    let form = KeptForm::new(request.path(), fields.clone().pairs());
    match viewer {
        Ok(viewer) if viewer.has_form_token(fields.get("csrf")) => {
            remember(form, request);
            Ok((viewer, fields))
        }
        Ok(_) => Err(PageError::ForeignForm(form)),
        Err(PageError::SignedOut(_)) => Err(PageError::SignedOut(form)),
        Err(error) => {
            remember(form, request);
            Err(error)
        }
    }
}
