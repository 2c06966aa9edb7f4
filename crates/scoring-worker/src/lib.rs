//! The scoring-worker role: takes accepted conversations from the bus, evaluates them, and tells the others.
//!
//! It owns the schema `scoring`. Transcripts stay with their owner: they are read from ingest when they are needed.

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

/// The schema in PostgreSQL, and the name of the file in standalone.
pub const SCHEMA: &str = "scoring";

/// What has to be applied before the role can work.
pub static MIGRATIONS: &[Migrations] = &[
    assay_messaging::MIGRATIONS,
    Migrations { postgres: embed!("migrations/postgres"), sqlite: embed!("migrations/sqlite") },
];
