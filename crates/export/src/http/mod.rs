//! The HTTP API: internal routes for the gateway, with a service token for export, and signed downloads.

mod downloads;
mod errors;
mod evaluations;
mod exports;

use std::sync::Arc;

use actix_web::middleware::from_fn;
use actix_web::web::{Data, ServiceConfig, get, head, post, scope};
use assay_clients::ScoringClient;
use assay_messaging::outbox::Outbox;
use assay_platform::auth::KeyRing;
use assay_platform::objects::Objects;
use assay_platform::web::{ResponseBudget, ServiceAuth, resource, service_auth_middleware};

use crate::app::download_permits::DownloadPermits;
use crate::app::read_permits::ReadPermits;
use crate::store::{DayCache, EvaluationStore, ExportStore};

/// State of the handlers.
pub(crate) struct Services {
    pub(crate) store: ExportStore,
    pub(crate) evaluations: EvaluationStore,
    pub(crate) days: Arc<DayCache>,
    pub(crate) read_permits: ReadPermits,
    pub(crate) outbox: Outbox,
    /// Keys of cursors and download URLs.
    pub(crate) keys: KeyRing,
    pub(crate) objects: Objects,
    pub(crate) downloads: DownloadPermits,
    pub(crate) response_budget: ResponseBudget,
    /// Open exports that an organization may have.
    pub(crate) max_open_exports: u32,
    /// Source of the target sequence.
    pub(crate) scoring: ScoringClient,
}

pub(crate) fn configure(app: &mut ServiceConfig, services: Data<Services>, auth: ServiceAuth) {
    app.app_data(services)
        .app_data(Data::new(auth))
        .service(
            scope("/internal/v1")
                .wrap(from_fn(service_auth_middleware))
                .service(resource(
                    "/exports",
                    vec![("GET", get().to(exports::list)), ("POST", post().to(exports::create))],
                ))
                .service(resource("/evaluations", vec![("GET", get().to(evaluations::list))]))
                .service(resource("/evaluations/summary", vec![("GET", get().to(evaluations::summarize))]))
                .service(resource("/evaluations/count", vec![("GET", get().to(evaluations::count))]))
                .service(resource(
                    "/evaluations/{id}/neighbours",
                    vec![("GET", get().to(evaluations::find_neighbours))],
                ))
                .service(resource("/exports/{id}", vec![("GET", get().to(exports::read))]))
                .service(resource("/exports/{id}/download", vec![("GET", get().to(exports::download))])),
        )
        .service(resource(
            "/v1/downloads/{id}",
            vec![("GET", get().to(downloads::send)), ("HEAD", head().to(downloads::describe))],
        ));
}
