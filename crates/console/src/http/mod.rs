//! The pages and their routes. Every request comes from the gateway, with a service token for the audience `console`.

mod agents;
mod assets;
mod conversation;
mod conversations;
mod error;
mod exports;
mod filter_form;
mod form;
mod help;
mod imports;
mod kept_form;
mod keys;
mod list_rows;
mod long_list;
mod overview;
mod overview_parts;
mod overview_selection;
mod refill;
mod respond;
mod session_form;
mod shell;
mod sign_in;
mod theme;
mod transcript;
mod verdict;
mod viewer;
mod webhook;
mod webhooks;

use actix_web::middleware::from_fn;
use actix_web::web::{Data, ServiceConfig, get, head, post, route, scope};
use assay_platform::web::{ServiceAuth, resource, service_auth_middleware};
use tokio::sync::Semaphore;

pub(crate) use self::assets::Assets;
use self::error::PageError;
use crate::app::{Services, SessionLookUps};
use crate::domain::FailedSignIns;

pub(crate) struct Console {
    pub(crate) services: Services,
    pub(crate) assets: Assets,
    pub(crate) failed_sign_ins: FailedSignIns,
    pub(crate) session_look_ups: SessionLookUps,
    /// For responses that need a transcript, which takes up to 4 MiB, and twice that while it is decoded.
    pub(crate) transcript_permits: Semaphore,
}

/// Transcripts in memory at once; further pages wait.
pub(crate) const MAX_TRANSCRIPTS_IN_MEMORY: usize = 4;

/// A page: GET and HEAD.
macro_rules! page {
    ($path:literal, $handler:path) => {
        resource($path, vec![("GET", get().to($handler)), ("HEAD", head().to($handler))])
    };
}

/// A page with a form that is sent to its own address.
macro_rules! form_page {
    ($path:literal, $page:path, $form:path) => {
        resource(
            $path,
            vec![("GET", get().to($page)), ("HEAD", head().to($page)), ("POST", post().to($form))],
        )
    };
}

/// The target of a form on another page.
macro_rules! form {
    ($path:literal, $form:path) => {
        resource($path, vec![("POST", post().to($form))])
    };
}

pub(crate) fn configure(app: &mut ServiceConfig, console: Data<Console>, auth: ServiceAuth) {
    app.app_data(console).app_data(Data::new(auth)).service(
        scope("/console")
            .wrap(from_fn(service_auth_middleware))
            .wrap(from_fn(respond::finish))
            .service(page!("/assets/{name}", assets::send_file))
            .service(form_page!("/sign-in", sign_in::show_form, sign_in::sign_in))
            .service(form!("/sign-out", sign_in::sign_out))
            .service(form!("/sessions/{id}/end", sign_in::end_session))
            .service(form!("/typed/{page:.*}", refill::show))
            .service(page!("/theme", theme::choose))
            .service(page!("/help", help::page))
            .service(page!("", overview::show))
            .service(page!("/conversations", conversations::show))
            .service(page!("/conversations/{id}", conversation::show))
            .service(page!("/conversations/{id}/messages/{number}", conversation::message))
            .service(page!("/conversations/{id}/evaluation.json", conversation::json))
            .service(form_page!("/exports", exports::list, exports::create))
            .service(page!("/exports/{id}/download", exports::download))
            .service(form_page!("/webhooks", webhooks::list, webhooks::create))
            .service(form_page!("/webhooks/{id}", webhook::show_webhook, webhook::change))
            .service(page!("/webhooks/{id}/deliveries/{delivery}", webhook::show_delivery))
            .service(form!("/webhooks/{id}/deliveries/{delivery}/replay", webhook::replay))
            .service(page!("/imports", imports::show))
            .service(form_page!("/keys", keys::list, keys::create))
            .service(form!("/keys/{id}/revoke", keys::revoke))
            .service(form_page!("/agents", agents::list, agents::create))
            .default_service(route().to(not_found)),
    );
}

async fn not_found() -> Result<actix_web::HttpResponse, PageError> {
    Err(PageError::NotFound)
}
