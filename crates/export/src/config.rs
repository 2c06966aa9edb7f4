//! The section `[export]` of the configuration.

use std::net::SocketAddr;
use std::time::Duration;

use assay_platform::db::DatabaseSettings;
use assay_platform::web::ServerSettings;
use secrecy::SecretString;
use serde::Deserialize;

use crate::app::download_permits::{DownloadLimits, DownloadPermits};

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
    /// Maximum number of evaluations in flight.
    pub max_in_flight: usize,
    /// Degraded while an unpublished event is older than this, in seconds.
    pub outbox_age_limit_seconds: u64,
    /// Maximum number of open (pending and running) exports of an organization.
    pub max_open_exports: u32,
    /// Maximum number of simultaneous downloads of one file.
    pub max_downloads_per_export: u32,
    /// Maximum number of simultaneous downloads of this process; one organization has at most half of them.
    pub max_downloads: u32,
    /// A connection is closed when its client reads nothing of a response for this many seconds; 0: never.
    pub response_stall_seconds: u64,
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

    pub(crate) fn downloads(&self) -> DownloadPermits {
        DownloadPermits::new(DownloadLimits {
            all: self.max_downloads as usize,
            per_export: self.max_downloads_per_export as usize,
        })
    }

    pub(crate) fn server(&self) -> ServerSettings {
        ServerSettings {
            response_stall: Duration::from_secs(self.response_stall_seconds),
            ..ServerSettings::default()
        }
    }

    pub(crate) fn outbox_age_limit(&self) -> Duration {
        Duration::from_secs(self.outbox_age_limit_seconds)
    }
}
