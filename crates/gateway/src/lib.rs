//! The gateway role: the public API. It authenticates callers, applies limits, validates bodies and forwards requests to the
//! services. It owns no data.

mod app;
mod config;
mod domain;
mod http;
mod metrics;
mod start;

pub use self::config::Config;
pub use self::http::openapi::document as openapi_document;
pub use self::start::{Dependencies, StartError, start};
