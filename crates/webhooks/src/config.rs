//! The section `[webhooks]` of the configuration.

use std::net::SocketAddr;
use std::time::Duration;

use assay_platform::db::DatabaseSettings;
use secrecy::SecretString;
use serde::Deserialize;

use crate::domain::address::{AddressRules, InvalidNetwork};
use crate::domain::schedule::{InvalidSchedule, Patience, Schedule};

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1_000;

/// Settings of the webhooks role. Every key is described in `config/default.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the other services reach this one.
    pub listen: SocketAddr,
    /// `postgres://…` or `sqlite:PATH`.
    pub database_url: SecretString,
    /// Connections at most.
    pub database_pool_size: u32,
    /// Whether `http://` is allowed beside `https://`.
    pub allow_http: bool,
    /// Private networks that messages may be sent to: `10.1.0.0/16,fd00::/8`.
    pub allowed_networks: String,
    /// Endpoints of an organization at most.
    pub endpoints_per_organization: u32,
    /// Pauses before each attempt, in seconds, separated by commas; the first one is 0.
    pub retry_schedule_seconds: String,
    /// How long an attempt may take, in milliseconds.
    pub attempt_deadline_milliseconds: u64,
    /// Attempts under way at most.
    pub concurrency: usize,
    /// Attempts under way at one endpoint at most.
    pub concurrency_per_endpoint: usize,
    /// How often due messages are looked for that nobody told of, in milliseconds.
    pub poll_interval_milliseconds: u64,
    /// How long the secret before a rotation goes on signing, in seconds.
    pub previous_secret_seconds: u32,
    /// An endpoint whose attempts fail for so many days is disabled; 0: never.
    pub disable_after_days: u32,
    /// Days that messages are kept.
    pub delivery_retention_days: u32,
    /// Between two rounds of housekeeping, in seconds.
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

    pub(crate) fn address_rules(&self) -> Result<AddressRules, InvalidNetwork> {
        AddressRules::new(self.allow_http, &self.allowed_networks)
    }

    pub(crate) fn schedule(&self) -> Result<Schedule, InvalidSchedule> {
        let patience = Patience { days: self.disable_after_days };
        Schedule::parse(&self.retry_schedule_seconds, patience)
    }

    pub(crate) fn attempt_deadline(&self) -> Duration {
        Duration::from_millis(self.attempt_deadline_milliseconds)
    }

    pub(crate) fn poll_interval(&self) -> Duration {
        Duration::from_millis(self.poll_interval_milliseconds)
    }

    pub(crate) fn previous_secret_millis(&self) -> i64 {
        i64::from(self.previous_secret_seconds) * 1_000
    }

    pub(crate) fn delivery_retention_millis(&self) -> i64 {
        i64::from(self.delivery_retention_days) * DAY_MILLIS
    }
}
