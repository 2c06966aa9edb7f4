//! The section `[registry]` of the configuration.

use std::net::SocketAddr;

use assay_contracts::retention::{InvalidPeriod, Period};
use assay_platform::db::DatabaseSettings;
use secrecy::SecretString;
use serde::Deserialize;

use crate::domain::DefaultPeriods;

/// How the registry is kept. Every key is described in `config/default.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the other services reach this one.
    pub listen: SocketAddr,
    /// `postgres://…` or `sqlite:PATH`.
    pub database_url: SecretString,
    /// Connections at most.
    pub database_pool_size: u32,
    /// Degraded when an event waits to be published for longer, in seconds.
    pub outbox_age_limit_seconds: u64,
    /// Days that transcripts are kept; 0: for ever. An organization may have a period of its own.
    pub transcript_retention_days: u32,
    /// Days that evaluations are kept; 0: for ever. An organization may have a period of its own.
    pub evaluation_retention_days: u32,
}

impl Config {
    /// How the database is opened.
    pub fn database(&self) -> DatabaseSettings {
        DatabaseSettings {
            database_url: self.database_url.clone(),
            database_pool_size: self.database_pool_size,
        }
    }

    /// The periods of organizations that have none of their own.
    ///
    /// # Errors
    /// When one is too long.
    pub fn default_periods(&self) -> Result<DefaultPeriods, InvalidPeriod> {
        Ok(DefaultPeriods {
            transcripts: Period::from_stored_days(self.transcript_retention_days)?,
            evaluations: Period::from_stored_days(self.evaluation_retention_days)?,
        })
    }
}
