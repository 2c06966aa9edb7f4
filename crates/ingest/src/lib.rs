//! The ingest role: accepts conversations, durably and once each, and keeps them for those who evaluate them.
//!
//! Owns the schema `ingest`. An import is answered when it is committed together with the event that tells of it;
//! imports that arrive while others are being committed share the next transaction.

mod app;
mod config;
mod domain;
mod http;
mod start;
mod store;

use assay_platform::db::{Migrations, embed, idempotency};

pub use self::config::Config;
pub use self::start::{Dependencies, StartError, migrate, start};

/// The schema in PostgreSQL, and the name of the file in standalone.
pub const SCHEMA: &str = "ingest";

/// What has to be applied before the role can work.
pub static MIGRATIONS: &[Migrations] = &[
    assay_messaging::MIGRATIONS,
    idempotency::MIGRATIONS,
    Migrations { postgres: embed!("migrations/postgres"), sqlite: embed!("migrations/sqlite") },
];
