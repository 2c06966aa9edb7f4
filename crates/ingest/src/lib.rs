//! The ingest role: accepts conversations durably and exactly once, and stores them for evaluation.
//!
//! Owns the schema `ingest`. An import is answered after it was committed together with its event. Imports that arrive
//! during a commit share the next transaction (group commit).

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

/// The migrations of the schema.
pub static MIGRATIONS: &[Migrations] = &[
    assay_messaging::MIGRATIONS,
    idempotency::MIGRATIONS,
    Migrations { postgres: embed!("migrations/postgres"), sqlite: embed!("migrations/sqlite") },
];
