//! Typed HTTP clients of Assay's own services.
//!
//! Every call has a token for its audience, the id and trace of the request, and a deadline. The gateway forwards raw bodies
//! with [`ServiceClient::send`]; the other roles use the typed clients.

#![warn(missing_docs)]

mod circuit;
mod error;
mod http;
mod ingest;
mod metrics;
mod pending;
mod registry;
mod scoring;
mod service;
mod webhooks;

pub use self::error::ClientError;
pub use self::http::{HttpClient, http_client};
pub use self::ingest::IngestClient;
pub use self::pending::{PendingImports, count_pending};
pub use self::registry::RegistryClient;
pub use self::scoring::ScoringClient;
pub use self::service::{Call, ServiceClient};
pub use self::webhooks::WebhooksClient;
