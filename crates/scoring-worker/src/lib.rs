//! The scoring-worker role: consumes accepted conversations, evaluates them and publishes the results.
//!
//! It owns the schema `scoring`. Transcripts stay in ingest and are read from there.

mod app;
mod config;
mod consume;
mod http;
mod metrics;
mod start;
mod store;

use assay_platform::db::{Migrations, embed};

pub use self::config::Config;
pub use self::consume::{DELETED_QUEUE, EXPIRED_QUEUE, QUEUE};
pub use self::start::{Dependencies, StartError, migrate, start};
pub use self::store::{
    DeletedEvaluation, EvaluationStore, NewEvaluation, StoredEvaluation, open as open_store,
};

/// Schema name in PostgreSQL, file name of the database in standalone.
pub const SCHEMA: &str = "scoring";

pub static MIGRATIONS: &[Migrations] = &[
    assay_messaging::MIGRATIONS,
    Migrations { postgres: embed!("migrations/postgres"), sqlite: embed!("migrations/sqlite") },
];
