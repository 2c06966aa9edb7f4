//! The console role: pages for people. It renders data of the other services, on behalf of the organization that a person is
//! signed in to, and stores nothing. The gateway passes requests under `/console` on to it.

mod app;
mod config;
mod domain;
mod http;
mod metrics;
mod start;

pub use self::config::Config;
pub use self::start::{Dependencies, StartError, start};
