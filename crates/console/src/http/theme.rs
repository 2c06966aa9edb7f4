//! The theme: kept in a cookie of the browser.

use actix_web::http::header::SET_COOKIE;
use actix_web::web::{Data, Query};
use actix_web::{HttpRequest, HttpResponse};
use serde::Deserialize;

use super::Console;
use super::error::PageError;
use super::respond::redirect;
use super::shell::{THEME_COOKIE, THEMES};
use super::viewer::PublicAddress;
use crate::domain::is_local_path;

const YEAR_SECONDS: u32 = 365 * 24 * 60 * 60;

#[derive(Deserialize)]
pub(crate) struct Choice {
    to: String,
    #[serde(default)]
    back: String,
}

pub(crate) async fn choose(
    request: HttpRequest,
    _: Data<Console>,
    choice: Query<Choice>,
) -> Result<HttpResponse, PageError> {
    let theme = THEMES.into_iter().find(|theme| *theme == choice.to).ok_or(PageError::NotFound)?;
    let back = if is_local_path(&choice.back) { choice.back.as_str() } else { "/console" };
    let secure = if PublicAddress::of(&request).is_secure { "; Secure" } else { "" };
    let cookie = format!(
        "{THEME_COOKIE}={theme}; Path=/console; HttpOnly; SameSite=Lax; Max-Age={YEAR_SECONDS}{secure}"
    );
    let mut response = redirect(back);
    if let Ok(cookie) = cookie.parse() {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    Ok(response)
}
