//! The page of the keyboard shortcuts; the script shows the same list in a dialog.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;

use super::error::PageError;
use super::respond;
use super::shell::{NO_SECTION, Shell};
use super::viewer::SessionRequest;

#[derive(Template)]
#[template(path = "help.html")]
struct Page {
    shell: Shell,
}

pub(crate) async fn page(request: SessionRequest) -> Result<HttpResponse, PageError> {
    let shell = Shell::new(&request, NO_SECTION, "Help");
    respond::page(&request.http, StatusCode::OK, &Page { shell })
}
