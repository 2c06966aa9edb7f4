//! The export role: keeps what exports are made of, queues export jobs, and gives out their files.
//!
//! Owns the schema `export`. Files are written by the role `export-worker`, which shares this role's database through
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

/// The schema that the role owns.
pub const SCHEMA: &str = "export";

/// The queue that all processes of the role share, without the namespace of the bus.
pub const QUEUE: &str = store::CONSUMER;

/// The same for events of deletion.
pub const DELETIONS_QUEUE: &str = store::DELETIONS_CONSUMER;

/// Every table of the schema.
pub static MIGRATIONS: &[Migrations] = &[
    assay_messaging::MIGRATIONS,
    idempotency::MIGRATIONS,
    Migrations { postgres: embed!("migrations/postgres"), sqlite: embed!("migrations/sqlite") },
];
