//! HTTP servers: error responses, request bodies, request logging, authentication of services, starting a server.

mod body;
mod body_budget;
pub mod cursor;
mod error;
mod etag;
mod health;
mod held_value;
mod metrics;
mod page_headers;
mod pagination;
mod read_ahead;
mod recorded_response;
mod request;
mod response_budget;
mod routes;
mod server;
mod service_auth;
mod shares;
mod unread_body;

pub use self::body::{
    BodyLimits, FORM_CONTENT_TYPE, SMALL_BODY, parse_body, read_body, read_buffered_body, read_form,
};
pub use self::body_budget::{BodyBudget, BufferedBody};
pub use self::error::{PROBLEM_CONTENT_TYPE, WebError, body_error};
pub use self::etag::{respond_json_with_etag, respond_with_etag};
pub use self::health::{healthz, readyz};
pub use self::held_value::{hold_large_until_sent, hold_until_sent};
pub use self::metrics::serve_metrics;
pub use self::page_headers::add_page_headers;
pub use self::pagination::{invalid_parameter, page_parameters};
pub use self::recorded_response::{idempotency_key, respond_with};
pub use self::request::{REQUEST_ID_HEADER, RefusedHeadPage, TRACEPARENT_HEADER, request_middleware};
pub use self::response_budget::{ResponseBudget, chunked_body};
pub use self::routes::{
    all_query_pairs, invalid_query, query_pairs, resource, route_not_found, without_content,
};
pub(crate) use self::server::serve_without_readiness_metrics;
pub use self::server::{ServerSettings, serve};
pub use self::service_auth::{Caller, ServiceAuth, ServiceCall, service_auth_middleware};
pub use self::shares::{ShareInUse, Shares};
