//! The webhooks role: keeps the endpoints that organizations want to be told at, makes messages of what is announced, and
//! delivers them as Standard Webhooks 1.0 asks for (ADR 0020).
//!
//! Owns the schema `webhooks`.

mod app;
mod config;
mod consume;
pub mod domain;
mod http;
mod metrics;
mod start;
pub mod store;

use assay_platform::db::{Migrations, embed, idempotency};

pub use self::config::Config;
pub use self::start::{Dependencies, StartError, migrate, start};

/// The schema that the role owns.
pub const SCHEMA: &str = "webhooks";

/// The queue that all processes of the role share, without the namespace of the bus.
pub const QUEUE: &str = store::CONSUMER;

/// Every table of the schema.
pub static MIGRATIONS: &[Migrations] = &[
    assay_messaging::MIGRATIONS,
    idempotency::MIGRATIONS,
    Migrations { postgres: embed!("migrations/postgres"), sqlite: embed!("migrations/sqlite") },
];
