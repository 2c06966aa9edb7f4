//! The webhooks role: stores the endpoints of organizations, turns events into deliveries, and sends them according to
//! Standard Webhooks 1.0 (ADR 20).
//!
//! Owns the schema `webhooks`. A *message* tells one endpoint about one event. With its status and attempts it is a
//! *delivery* in the API and in the database.

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

pub const SCHEMA: &str = "webhooks";

/// Queue shared by all processes of the role, without the namespace of the bus.
pub const QUEUE: &str = store::CONSUMER;

pub static MIGRATIONS: &[Migrations] = &[
    assay_messaging::MIGRATIONS,
    idempotency::MIGRATIONS,
    Migrations { postgres: embed!("migrations/postgres"), sqlite: embed!("migrations/sqlite") },
];
