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
    /// Listen address of the internal API.
    pub listen: SocketAddr,
    /// `postgres://…` or `sqlite:PATH`.
    pub database_url: SecretString,
    /// Maximum number of connections.
    pub database_pool_size: u32,
    /// Maximum number of evaluations stored in one transaction.
    pub batch_size: usize,
    /// Maximum number of unacknowledged evaluations.
    pub max_in_flight: usize,
    /// Degraded while an unpublished event is older than this, in seconds.
    pub outbox_age_limit_seconds: u64,
    /// Memory for the columns of days that lists and summaries read, in bytes.
    pub day_cache_bytes: u64,
    /// Interval between maintenance runs, in seconds.
    pub maintenance_interval_seconds: u64,
}

impl Config {
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
