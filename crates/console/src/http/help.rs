//! The page of the keyboard shortcuts; the script shows the same list in a dialog.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;

use super::error::PageError;
use super::respond;
use super::shell::Shell;
use super::viewer::Visit;

#[derive(Template)]
#[template(path = "help.html")]
struct Page {
    shell: Shell,
}

pub(crate) async fn page(visit: Visit) -> Result<HttpResponse, PageError> {
    let shell = Shell::new(&visit, "", "Help");
    respond::page(&visit.request, StatusCode::OK, &Page { shell })
}
