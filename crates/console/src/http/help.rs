//! The page of the keyboard shortcuts; the script shows the same list in a dialog.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;

use super::Console;
use super::error::PageError;
use super::respond;
use super::shell::Shell;
use super::viewer::Viewer;

#[derive(Template)]
#[template(path = "help.html")]
struct Page {
    shell: Shell,
}

pub(crate) async fn page(request: HttpRequest, console: Data<Console>) -> Result<HttpResponse, PageError> {
    let viewer = Viewer::of(&request, &console).await?;
    let shell = Shell::new(&request, &console, &viewer, "", "Help");
    respond::page(&request, StatusCode::OK, &Page { shell })
}
