//! The registry's internal HTTP interface. Every call needs a service token made for agent-registry.

mod agents;
mod console;
mod keys;
mod retention;

use std::str::FromStr;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::middleware::from_fn;
use actix_web::web::{Data, Payload, ServiceConfig, delete, get, post, scope};
use assay_contracts::json::JsonFault;
use assay_contracts::validation::BodyError;
use assay_messaging::outbox::Outbox;
use assay_platform::web::{
    BodyBudget, BodyLimits, SMALL_BODY, ServiceAuth, ServiceCall, WebError, invalid_parameter, parse_body,
    query_pairs, read_buffered_body, resource, service_auth_middleware,
};
use serde::de::DeserializeOwned;

use crate::app::record_key_use::KeyUses;
use crate::domain::{DefaultRetention, SessionLimits};
use crate::store::Store;

/// Limits of a body that the gateway passes on from a client. The gateway refuses larger ones itself.
const CLIENT_BODY_LIMITS: BodyLimits =
    BodyLimits { max_bytes: SMALL_BODY, deadline: Duration::from_secs(10) };

/// Limits of a body that a service wrote. The largest is that of `/agents/find`, with which ingest looks up the authors of
/// an import.
const SERVICE_BODY_LIMITS: BodyLimits = BodyLimits { max_bytes: 1024 * 1024, ..CLIENT_BODY_LIMITS };

/// Shared state of the handlers.
pub struct Services {
    pub store: Store,
    pub outbox: Outbox,
    pub key_uses: KeyUses,
    pub default_retention: DefaultRetention,
    pub session_limits: SessionLimits,
    /// Memory of the bodies that services wrote.
    pub body_budget: BodyBudget,
}

type Call = ServiceCall<Services>;

pub fn configure(app: &mut ServiceConfig, services: Data<Services>, auth: ServiceAuth) {
    app.app_data(services).app_data(Data::new(auth)).service(
        scope("/internal/v1")
            .wrap(from_fn(service_auth_middleware))
            .service(resource("/keys/resolve", vec![("POST", post().to(keys::resolve))]))
            .service(resource(
                "/keys",
                vec![("GET", get().to(keys::list)), ("POST", post().to(keys::create))],
            ))
            .service(resource("/keys/{id}", vec![("DELETE", delete().to(keys::revoke))]))
            .service(resource("/console/sessions/find", vec![("POST", post().to(console::find))]))
            .service(resource(
                "/console/sessions",
                vec![("GET", get().to(console::list)), ("POST", post().to(console::begin))],
            ))
            .service(resource("/console/sessions/{id}", vec![("DELETE", delete().to(console::end))]))
            .service(resource(
                "/agents",
                vec![("GET", get().to(agents::list)), ("POST", post().to(agents::create))],
            ))
            .service(resource("/agents/find", vec![("POST", post().to(agents::find))]))
            .service(resource("/retention", vec![("GET", get().to(retention::page))])),
    );
}

/// The parameter `before` of a list: the last id of the page before.
fn read_before<T: FromStr>(request: &HttpRequest) -> Result<Option<T>, WebError> {
    let query = query_pairs(request, &["before"])?;
    let parse = |text: &String| text.parse().map_err(|_| invalid_parameter("before", "must be an id"));
    query.get("before").map(parse).transpose()
}

/// Reads and parses a body that a service wrote.
async fn read_service_body<T>(call: &Call, payload: Payload) -> Result<T, WebError>
where
    T: DeserializeOwned + Send + 'static,
{
    let body =
        read_buffered_body(&call.request, payload, SERVICE_BODY_LIMITS, &call.services.body_budget).await?;
    parse_body(&body, |bytes| {
        serde_json::from_slice(bytes).map_err(|error| BodyError::Malformed(JsonFault::of(&error).to_string()))
    })
    .await
}
