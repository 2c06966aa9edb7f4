//! The theme: kept in a cookie of the browser.

use actix_web::{HttpRequest, HttpResponse};
use assay_platform::web::query_pairs;

use super::error::PageError;
use super::respond::redirect;
use super::shell::{THEME_COOKIE, THEMES};
use super::viewer::PublicAddress;
use crate::domain::may_redirect_to;

const YEAR_SECONDS: i64 = 365 * 24 * 60 * 60;

pub(crate) async fn choose(request: HttpRequest) -> Result<HttpResponse, PageError> {
    let query = query_pairs(&request, &["to", "back"])?;
    let wanted = query.get("to").map(String::as_str);
    let theme = THEMES.into_iter().find(|theme| wanted == Some(*theme)).ok_or(PageError::NotFound)?;
    let back = query.get("back").filter(|path| may_redirect_to(path)).map_or("/console", String::as_str);
    let mut response = redirect(back);
    let (headers, pair) = (response.headers_mut(), format!("{THEME_COOKIE}={theme}"));
    PublicAddress::of(&request).set_cookie_under(headers, &pair, "/console", YEAR_SECONDS);
    Ok(response)
}
