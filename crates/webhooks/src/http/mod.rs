//! The role's HTTP interface: internal routes for the gateway and for scoring-worker, which require a service token for
//! the audience webhooks.

mod deliveries;
mod errors;
mod subscribers;
mod webhooks;

use std::sync::Arc;

use actix_web::middleware::from_fn;
use actix_web::web::{Data, ServiceConfig, delete, get, patch, post, scope};
use assay_platform::auth::KeyRing;
use assay_platform::web::{ServiceAuth, ServiceCall, resource, service_auth_middleware};
use tokio::sync::Notify;

use crate::app::RequestLimit;
use crate::domain::address::AddressRules;
use crate::store::WebhookStore;

/// Shared state of the handlers.
pub(crate) struct Services {
    pub(crate) store: WebhookStore,
    pub(crate) keys: KeyRing,
    pub(crate) rules: Arc<AddressRules>,
    pub(crate) sender_wakeup: Arc<Notify>,
    pub(crate) request_limit: RequestLimit,
    pub(crate) endpoints_per_organization: u32,
    /// How long the previous secret keeps signing after a rotation.
    pub(crate) previous_secret_millis: i64,
}

type Call = ServiceCall<Services>;

pub(crate) fn configure(app: &mut ServiceConfig, services: Data<Services>, auth: ServiceAuth) {
    app.app_data(services).app_data(Data::new(auth)).service(
        scope("/internal/v1")
            .wrap(from_fn(service_auth_middleware))
            .service(resource("/interest", vec![("GET", get().to(subscribers::page))]))
            .service(resource(
                "/webhooks",
                vec![("GET", get().to(webhooks::list)), ("POST", post().to(webhooks::create))],
            ))
            .service(resource(
                "/webhooks/{id}",
                vec![
                    ("GET", get().to(webhooks::read)),
                    ("PATCH", patch().to(webhooks::change)),
                    ("DELETE", delete().to(webhooks::remove)),
                ],
            ))
            .service(resource("/webhooks/{id}/secret", vec![("GET", get().to(webhooks::secret))]))
            .service(resource("/webhooks/{id}/secret/rotate", vec![("POST", post().to(webhooks::rotate))]))
            .service(resource("/webhooks/{id}/test", vec![("POST", post().to(deliveries::test))]))
            .service(resource("/webhooks/{id}/deliveries", vec![("GET", get().to(deliveries::list))]))
            .service(resource(
                "/webhooks/{id}/deliveries/{delivery_id}",
                vec![("GET", get().to(deliveries::read))],
            ))
            .service(resource(
                "/webhooks/{id}/deliveries/{delivery_id}/replay",
                vec![("POST", post().to(deliveries::replay))],
            )),
    );
}
