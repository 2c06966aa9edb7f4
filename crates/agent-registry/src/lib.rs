//! The agent-registry role: who the tenants are, what their keys may do, and which AI agents they have registered.
//!
//! Owns the schema `registry`. The gateway resolves API keys here and passes agent creations on; ingest resolves the
//! AI authors of a conversation. The executable manages keys through [`keys`], without HTTP.

mod app;
mod config;
mod domain;
mod http;
mod start;
mod store;

use assay_platform::db::{Migrations, embed, idempotency};

pub use self::config::Config;
pub use self::start::{Dependencies, StartError, migrate, start};

/// API keys and the organizations they belong to: what an operator does on the command line.
pub mod keys {
    pub use crate::app::bootstrap::bootstrap;
    pub use crate::app::create_key::{CreateKeyError, CreatedKey, NewKey, create};
    pub use crate::app::list_keys::list;
    pub use crate::app::revoke_key::revoke;
    pub use crate::domain::{InvalidLabel, KeyName, KeyRecord, OrganizationName, Revocation};
    pub use crate::store::MAX_LISTED_KEYS;
}

/// How long organizations keep things: what an operator does on the command line.
pub mod retention {
    pub use crate::app::list_retention::list;
    pub use crate::app::set_retention::set;
    pub use crate::domain::{DefaultPeriods, OwnPeriods, PeriodChange, RetentionChange, RetentionRecord};
}

/// The schema that the role owns.
pub const SCHEMA: &str = "registry";

/// Every table of the schema.
pub static MIGRATIONS: &[Migrations] = &[
    assay_messaging::MIGRATIONS,
    idempotency::MIGRATIONS,
    Migrations { postgres: embed!("migrations/postgres"), sqlite: embed!("migrations/sqlite") },
];
