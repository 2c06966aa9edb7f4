//! The console role: pages for people. It renders what the other services have, on behalf of the organization that a person
//! is signed in to, and keeps nothing. It is reached through the gateway, under `/console`.

mod app;
mod config;
mod domain;
mod http;
mod metrics;
mod start;

pub use self::config::Config;
pub use self::start::{Dependencies, StartError, start};
