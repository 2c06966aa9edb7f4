//! The role's HTTP interface: internal routes for the gateway, which need a service token made for export, and the
//! signed download addresses, whose signature is the credential.

mod downloads;
mod errors;
mod exports;

use std::sync::Arc;

use actix_web::middleware::from_fn;
use actix_web::web::{Data, ServiceConfig, get, head, post, scope};
use assay_clients::ScoringClient;
use assay_messaging::outbox::Outbox;
use assay_platform::auth::SigningKeys;
use assay_platform::objects::Objects;
use assay_platform::web::{ServiceAuth, resource, service_auth_middleware};

use crate::store::ExportStore;

/// What the handlers work with.
pub(crate) struct Services {
    /// Jobs.
    pub(crate) store: Arc<dyn ExportStore>,
    /// Where events wait to be published.
    pub(crate) outbox: Outbox,
    /// Signs cursors and download addresses.
    pub(crate) keys: SigningKeys,
    /// Files.
    pub(crate) objects: Objects,
    /// Knows how many evaluations there are.
    pub(crate) scoring: ScoringClient,
}

/// Adds the routes to an app.
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
                .service(resource("/exports/{id}", vec![("GET", get().to(exports::read))]))
                .service(resource("/exports/{id}/download", vec![("GET", get().to(exports::download))])),
        )
        .service(resource(
            "/v1/downloads/{id}",
            vec![("GET", get().to(downloads::send)), ("HEAD", head().to(downloads::describe))],
        ));
}
