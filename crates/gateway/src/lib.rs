//! The gateway role: the public API. It checks keys, limits and bodies, and routes to the services; it owns no data.

mod app;
mod config;
mod domain;
mod http;
mod metrics;
mod start;

pub use self::config::Config;
pub use self::http::openapi::document as openapi_document;
pub use self::start::{Dependencies, StartError, start};
