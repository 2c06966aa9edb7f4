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
