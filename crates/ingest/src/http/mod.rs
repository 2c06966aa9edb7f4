//! The role's internal HTTP interface. Every call needs a service token issued for ingest.

mod conversations;
mod refusals;
mod tickets;
mod transcripts;

use std::time::Duration;

use actix_web::middleware::from_fn;
use actix_web::web::{Data, Payload, ServiceConfig, delete, get, post, scope};
use assay_messaging::outbox::Outbox;
use assay_platform::web::{
    BodyBudget, BodyLimits, BufferedBody, ResponseBudget, ServiceAuth, ServiceCall, WebError,
    read_buffered_body, resource, service_auth_middleware,
};

use crate::app::accept_conversation::Acceptance;
use crate::store::Store;

/// Short, because the gateway sends a complete body inside the cluster.
const BODY_DEADLINE: Duration = Duration::from_secs(10);

/// State of the handlers.
pub struct Services {
    pub store: Store,
    pub outbox: Outbox,
    pub acceptance: Acceptance,
    /// Maximum size of a body, in bytes.
    pub max_body_bytes: usize,
    /// Bounds the bodies of all requests.
    pub body_budget: BodyBudget,
    /// Bounds the large responses to clients: transcripts, refusals, and tickets with a long subject.
    pub response_budget: ResponseBudget,
}

type Call = ServiceCall<Services>;

pub fn configure(services: Services, auth: ServiceAuth) -> impl Fn(&mut ServiceConfig) + Clone + Send {
    let (services, auth) = (Data::new(services), Data::new(auth));
    move |config| {
        config.app_data(services.clone()).app_data(auth.clone()).service(
            scope("/internal/v1")
                .wrap(from_fn(service_auth_middleware))
                .service(resource("/conversations", vec![("POST", post().to(conversations::accept))]))
                .service(resource(
                    "/tickets/{id}",
                    vec![("GET", get().to(tickets::read)), ("DELETE", delete().to(tickets::delete))],
                ))
                .service(resource("/tickets", vec![("GET", get().to(tickets::count))]))
                .service(resource("/tickets/{id}/transcript", vec![("GET", get().to(transcripts::read_one))]))
                .service(resource("/tickets/{id}/deletion", vec![("GET", get().to(tickets::deletion))]))
                .service(resource(
                    "/refusals",
                    vec![("GET", get().to(refusals::list)), ("POST", post().to(refusals::report))],
                ))
                .service(resource("/transcripts", vec![("POST", post().to(transcripts::read_many))])),
        );
    }
}

/// Reads a body of at most `max_bytes` within `budget`: that of all bodies, or the share of an organization.
async fn read_body(
    call: &Call,
    payload: Payload,
    max_bytes: usize,
    budget: &BodyBudget,
) -> Result<BufferedBody, WebError> {
    let limits = BodyLimits { max_bytes, deadline: BODY_DEADLINE };
    read_buffered_body(&call.request, payload, limits, budget).await
}
