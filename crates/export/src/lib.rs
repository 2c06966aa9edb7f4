//! The export role: maintains the read model of evaluations, serves lists and summaries from it (ADR 28), queues export jobs and
//! serves their files.
//!
//! Owns the schema `export`. The role `export-worker` writes the files and shares the database through
//! [`store`].

mod app;
mod config;
mod consume;
pub mod domain;
mod http;
mod start;
pub mod store;

use assay_platform::db::{Migrations, embed, idempotency};

pub use self::config::Config;
pub use self::start::{Dependencies, StartError, migrate, start};

/// Schema name in PostgreSQL, file name of the database in standalone.
pub const SCHEMA: &str = "export";

/// Queue name of evaluations, without the namespace of the bus. Shared by all processes of the role.
pub const EVALUATIONS_QUEUE: &str = store::CONSUMER;

/// Queue name of deletions, likewise.
pub const DELETIONS_QUEUE: &str = store::DELETIONS_CONSUMER;

pub static MIGRATIONS: &[Migrations] = &[
    assay_messaging::MIGRATIONS,
    idempotency::MIGRATIONS,
    Migrations { postgres: embed!("migrations/postgres"), sqlite: embed!("migrations/sqlite") },
];
