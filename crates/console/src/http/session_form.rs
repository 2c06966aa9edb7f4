//! Forms of a session: refused unless a page of the same session sent them.

use actix_web::HttpRequest;
use actix_web::web::Payload;

use super::Console;
use super::error::PageError;
use super::form::{Fields, read_same_origin_form};
use super::viewer::Viewer;
use crate::domain::KeptForm;

/// Who sent a form, and its fields.
///
/// # Errors
/// [`PageError::SignedOut`] without a session; [`PageError::ForeignForm`] when another site sent it, or it does not have the
/// session's token. In both cases what was typed is kept for the form's page, unless another site sent it.
pub(crate) async fn read_session_form(
    request: &HttpRequest,
    payload: Payload,
    console: &Console,
) -> Result<(Viewer, Fields), PageError> {
    let viewer = match Viewer::of(request, console).await {
        Ok(viewer) => Some(viewer),
        Err(PageError::SignedOut(_)) => None,
        Err(error) => return Err(error),
    };
    let fields = read_same_origin_form(request, payload).await?;
    match viewer {
        Some(viewer) if viewer.has_form_token(fields.get("csrf")) => Ok((viewer, fields)),
        Some(_) => Err(PageError::ForeignForm(KeptForm::new(request.path(), fields.pairs()))),
        None => Err(PageError::SignedOut(KeptForm::new(request.path(), fields.pairs()))),
    }
}
