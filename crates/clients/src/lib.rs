//! Typed HTTP clients of Assay's own services.
//!
//! One way to call a service: a token made for it, the request's id and trace, a deadline. The gateway passes raw
//! bodies through [`Service::send`]; the other roles use the typed calls.

mod circuit;
mod error;
mod http;
mod ingest;
mod metrics;
mod registry;
mod scoring;
mod service;

pub use self::error::ClientError;
pub use self::http::{HttpClient, HttpSettings, http_client};
pub use self::ingest::IngestClient;
pub use self::registry::RegistryClient;
pub use self::scoring::ScoringClient;
pub use self::service::{Call, Service};
