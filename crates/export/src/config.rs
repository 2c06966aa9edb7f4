//! The section `[export]` of the configuration.

use std::net::SocketAddr;
use std::time::Duration;

use assay_platform::db::DatabaseSettings;
use secrecy::SecretString;
use serde::Deserialize;

/// Settings of the export role. Every key is described in `config/default.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the other services reach this one.
    pub listen: SocketAddr,
    /// `postgres://…` or `sqlite:PATH`.
    pub database_url: SecretString,
    /// Connections at most.
    pub database_pool_size: u32,
    /// Evaluations stored together, in one transaction, at most.
    #[serde(default = "default_batch_size")]
    pub batch_size: usize,
    /// Evaluations taken from the bus at the same time, at most.
    #[serde(default = "default_max_in_flight")]
    pub max_in_flight: usize,
    /// Degraded while an event waits longer than this to be published, in seconds.
    #[serde(default = "default_outbox_age_limit_seconds")]
    pub outbox_age_limit_seconds: u64,
    /// Between two rounds of housekeeping, in seconds.
    #[serde(default = "default_maintenance_interval_seconds")]
    pub maintenance_interval_seconds: u64,
}

impl Config {
    /// How the database is opened.
    pub fn database(&self) -> DatabaseSettings {
        DatabaseSettings {
            database_url: self.database_url.clone(),
            database_pool_size: self.database_pool_size,
        }
    }

    pub(crate) fn outbox_age_limit(&self) -> Duration {
        Duration::from_secs(self.outbox_age_limit_seconds)
    }
}

fn default_batch_size() -> usize {
    128
}

fn default_max_in_flight() -> usize {
    512
}

fn default_maintenance_interval_seconds() -> u64 {
    3_600
}

fn default_outbox_age_limit_seconds() -> u64 {
    60
}
