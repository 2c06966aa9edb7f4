//! The agent-registry role: organizations, their API keys and retention periods, and their registered AI agents.
//!
//! Owns the schema `registry`. The gateway resolves API keys here and forwards the creation of agents; ingest resolves
//! the AI authors of a conversation. The executable manages keys through [`keys`] without HTTP.

mod app;
mod config;
mod domain;
mod http;
mod start;
mod store;

use assay_platform::db::{Migrations, embed, idempotency};

pub use self::config::Config;
pub use self::start::{Dependencies, StartError, migrate, start};

/// Operations on API keys, for the command line.
pub mod keys {
    pub use crate::app::bootstrap::bootstrap;
    pub use crate::app::create_key::{CreateKey, CreateKeyError, CreatedKey, create};
    pub use crate::app::list_keys::list;
    pub use crate::app::revoke_key::revoke;
    pub use crate::domain::{InvalidName, KeyName, KeyRecord, OrganizationName, Revocation};
    pub use crate::store::MAX_LISTED_KEYS;
}

/// Sessions of the console, for the command line.
pub mod console {
    pub use crate::app::console_sessions::{CreateSignInTokenError, create_sign_in_token};
}

/// Operations on retention periods, for the command line.
pub mod retention {
    pub use crate::app::list_retention::list;
    pub use crate::app::set_retention::set;
    pub use crate::domain::{
        DefaultRetention, OverrideChange, RetentionChange, RetentionOverrides, RetentionRecord,
    };
}

pub const SCHEMA: &str = "registry";

pub static MIGRATIONS: &[Migrations] = &[
    assay_messaging::MIGRATIONS,
    idempotency::MIGRATIONS,
    Migrations { postgres: embed!("migrations/postgres"), sqlite: embed!("migrations/sqlite") },
];
