//! The section `[export_worker]` of the configuration.

use std::net::SocketAddr;
use std::time::Duration;

use assay_contracts::retention::{InvalidPeriod, Period};
use assay_platform::db::DatabaseSettings;
use secrecy::SecretString;
use serde::Deserialize;

use crate::app::WorkSettings;

/// Settings of the export worker role. Every key is described in `config/default.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where it answers whether it is alive and ready.
    pub listen: SocketAddr,
    /// The database of the export role: `postgres://…` or `sqlite:PATH`.
    pub database_url: SecretString,
    /// Connections at most; each job holds one while it reads.
    pub database_pool_size: u32,
    /// Jobs at the same time, at most.
    #[serde(default = "default_parallel_jobs")]
    pub parallel_jobs: u32,
    /// A job is taken over by another worker when its worker has not been heard of for so long, in milliseconds.
    #[serde(default = "default_lease_milliseconds")]
    pub lease_milliseconds: u32,
    /// How often jobs are looked for that nobody told of, in milliseconds.
    #[serde(default = "default_poll_interval_milliseconds")]
    pub poll_interval_milliseconds: u32,
    /// Jobs younger than this are left to the worker that is told of them first, in milliseconds.
    #[serde(default = "default_pending_grace_milliseconds")]
    pub pending_grace_milliseconds: u32,
    /// Attempts at a job before it fails for good.
    #[serde(default = "default_max_attempts")]
    pub max_attempts: u32,
    /// Pause after the first failed attempt, in milliseconds; each further one is four times as long, five minutes at
    /// most.
    #[serde(default = "default_retry_delay_milliseconds")]
    pub retry_delay_milliseconds: u32,
    /// How long a job waits for evaluations that were made before its export was created and are on their way into the
    /// read model, in milliseconds.
    #[serde(default = "default_evaluations_wait_milliseconds")]
    pub evaluations_wait_milliseconds: u32,
    /// Files are kept for so many days, unless their organization has a period of its own; 0: for ever.
    #[serde(default = "default_file_retention_days")]
    pub file_retention_days: u32,
    /// Between two rounds of looking for periods that have changed, in seconds.
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

    /// How files are kept whose organization has no period of its own.
    ///
    /// # Errors
    /// When the period is too long.
    pub fn file_retention(&self) -> Result<Period, InvalidPeriod> {
        Period::from_stored_days(self.file_retention_days)
    }

    pub(crate) fn work(&self) -> Result<WorkSettings, InvalidPeriod> {
        let millis = |millis: u32| Duration::from_millis(u64::from(millis));
        Ok(WorkSettings {
            lease: millis(self.lease_milliseconds),
            poll_interval: millis(self.poll_interval_milliseconds),
            pending_grace: millis(self.pending_grace_milliseconds),
            max_attempts: self.max_attempts,
            retry_delay: millis(self.retry_delay_milliseconds),
            evaluations_wait: millis(self.evaluations_wait_milliseconds),
            file_retention: self.file_retention()?,
        })
    }
}

fn default_parallel_jobs() -> u32 {
    2
}

fn default_lease_milliseconds() -> u32 {
    60_000
}

fn default_poll_interval_milliseconds() -> u32 {
    5_000
}

fn default_pending_grace_milliseconds() -> u32 {
    10_000
}

fn default_max_attempts() -> u32 {
    5
}

fn default_retry_delay_milliseconds() -> u32 {
    5_000
}

fn default_evaluations_wait_milliseconds() -> u32 {
    120_000
}

fn default_file_retention_days() -> u32 {
    30
}

fn default_maintenance_interval_seconds() -> u64 {
    3_600
}
