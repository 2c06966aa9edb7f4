//! Infrastructure shared by all roles, without any knowledge of conversations: `settings` (configuration), `telemetry` (logs,
//! metrics, traces), `runtime` (tasks and shutdown), `web` (HTTP servers and error responses), `auth` (credentials and
//! signatures), `db` (databases), `objects` (files) and `http_client`.

#![warn(missing_docs)]

pub mod auth;
pub mod db;
pub mod http_client;
pub mod objects;
pub mod runtime;
pub mod settings;
pub mod telemetry;
pub mod web;

/// End of the error message that refuses an address of PostgreSQL, RabbitMQ, S3 or OTLP.
#[cfg(not(feature = "distributed"))]
pub const NOT_IN_THIS_BUILD: &str =
    "which this build of Assay, made by `make run`, does not have: build with `cargo build --release`";
