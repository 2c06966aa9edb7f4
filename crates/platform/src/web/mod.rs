//! HTTP: one shape of error, one way to read bodies, one way to log a request, one way to start a server.

mod body;
mod body_memory;
mod error;
mod health;
mod metrics;
mod page;
mod request;
mod routes;
mod server;
mod service_auth;
mod stored_answer;
mod unread_body;

pub use self::body::{BodyLimits, LARGE_BODY, parse_body, read_body, read_held_body};
pub use self::body_memory::{BodyMemory, HeldBody};
pub use self::error::{PROBLEM_CONTENT_TYPE, WebError, body_error};
pub use self::health::{healthz, readyz};
pub(crate) use self::metrics::serve_metrics;
pub use self::page::{invalid_parameter, page_parameters};
pub use self::request::{REQUEST_ID_HEADER, TRACEPARENT_HEADER, request_middleware};
pub use self::routes::{query_pairs, resource, route_not_found};
pub(crate) use self::server::serve_unwatched;
pub use self::server::{ServerSettings, serve};
pub use self::service_auth::{Caller, ServiceAuth, service_auth_middleware};

pub use self::stored_answer::give_stored_answer;
