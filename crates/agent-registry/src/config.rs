//! The section `[registry]` of the configuration.

use std::net::SocketAddr;

use assay_contracts::retention::{InvalidRetentionPeriod, RetentionPeriod};
use assay_platform::db::DatabaseSettings;
use secrecy::SecretString;
use serde::Deserialize;

use crate::domain::{DefaultRetention, SessionLimits};

/// Settings of the registry. Every key is described in `config/default.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address of the internal HTTP server.
    pub listen: SocketAddr,
    /// `postgres://…` or `sqlite:PATH`.
    pub database_url: SecretString,
    pub database_pool_size: u32,
    /// The role is degraded while an event waits longer to be published.
    pub outbox_age_limit_seconds: u64,
    /// Retention period of transcripts; 0: forever. An organization can override it.
    pub transcript_retention_days: u32,
    /// Retention period of evaluations; 0: forever. An organization can override it.
    pub evaluation_retention_days: u32,
    /// A session of the console ends when it was not used for this time.
    pub console_idle_minutes: u32,
    /// A session of the console ends this long after its beginning.
    pub console_session_hours: u32,
}

impl Config {
    pub fn database(&self) -> DatabaseSettings {
        DatabaseSettings {
            database_url: self.database_url.clone(),
            database_pool_size: self.database_pool_size,
        }
    }

    /// When sessions of the console end.
    pub fn session_limits(&self) -> SessionLimits {
        SessionLimits {
            idle_millis: i64::from(self.console_idle_minutes) * 60_000,
            total_millis: i64::from(self.console_session_hours) * 3_600_000,
        }
    }

    /// The retention periods of organizations without overrides.
    ///
    /// # Errors
    /// When one is too long.
    pub fn default_retention(&self) -> Result<DefaultRetention, InvalidRetentionPeriod> {
        Ok(DefaultRetention {
            transcripts: RetentionPeriod::from_stored_days(self.transcript_retention_days)?,
            evaluations: RetentionPeriod::from_stored_days(self.evaluation_retention_days)?,
        })
    }
}
