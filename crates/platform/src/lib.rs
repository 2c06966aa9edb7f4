//! What makes a role a service, and knows nothing of conversations.
//!
//! `settings` reads the configuration, `telemetry` the logs, `runtime` owns tasks and their end, `web` serves HTTP
//! with one shape of error, `auth` holds credentials and signatures, `db` databases, `objects` files.

pub mod auth;
pub mod db;
pub mod objects;
pub mod runtime;
pub mod settings;
pub mod telemetry;
pub mod web;
