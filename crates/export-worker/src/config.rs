//! The section `[export_worker]` of the configuration.

use std::net::SocketAddr;
use std::time::Duration;

use assay_contracts::retention::{InvalidRetentionPeriod, RetentionPeriod};
use assay_platform::db::DatabaseSettings;
use secrecy::SecretString;
use serde::Deserialize;

use crate::app::WorkerSettings;

/// Settings of the export worker role. Every key is described in `config/default.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Listen address of the health endpoints.
    pub listen: SocketAddr,
    /// The database of the export role: `postgres://…` or `sqlite:PATH`.
    pub database_url: SecretString,
    /// Maximum number of connections; each job uses one while it reads.
    pub database_pool_size: u32,
    /// Maximum number of files written at the same time.
    pub parallel_jobs: u32,
    /// Duration of a lease unless it is renewed, in milliseconds; then another worker takes over the job.
    pub lease_milliseconds: u32,
    /// Interval of polling for jobs whose event was lost, in milliseconds.
    pub poll_interval_milliseconds: u32,
    /// Polling ignores pending jobs younger than this, in milliseconds: their events wake a worker.
    pub pending_grace_milliseconds: u32,
    /// Attempts before a job fails permanently.
    pub max_attempts: u32,
    /// Pause after the first failed attempt, in milliseconds; quadruples after each further one, up to five minutes.
    pub retry_delay_milliseconds: u32,
    /// How long a job waits for the read model to contain all evaluations made before its export was created, in
    /// milliseconds.
    pub evaluations_wait_milliseconds: u32,
    /// Retention period of files in days, unless the organization has its own; 0: forever.
    pub file_retention_days: u32,
    /// Left-over files younger than this are kept, in seconds.
    pub sweep_grace_seconds: u64,
    /// Interval between maintenance runs, and between sweeps, in seconds.
    pub maintenance_interval_seconds: u64,
}

impl Config {
    pub fn database(&self) -> DatabaseSettings {
        DatabaseSettings {
            database_url: self.database_url.clone(),
            database_pool_size: self.database_pool_size,
        }
    }

    /// Retention period of organizations without their own.
    ///
    /// # Errors
    /// When the period is too long.
    pub fn file_retention(&self) -> Result<RetentionPeriod, InvalidRetentionPeriod> {
        RetentionPeriod::from_stored_days(self.file_retention_days)
    }

    pub(crate) fn sweep_grace_millis(&self) -> i64 {
        i64::try_from(Duration::from_secs(self.sweep_grace_seconds).as_millis()).unwrap_or(i64::MAX)
    }

    pub(crate) fn worker_settings(&self) -> Result<WorkerSettings, InvalidRetentionPeriod> {
        let millis = |millis: u32| Duration::from_millis(u64::from(millis));
        Ok(WorkerSettings {
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
