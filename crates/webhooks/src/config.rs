//! The section `[webhooks]` of the configuration.

use std::net::SocketAddr;
use std::time::Duration;

use assay_platform::db::DatabaseSettings;
use secrecy::SecretString;
use serde::Deserialize;

use crate::domain::address::{AddressRules, InvalidNetwork};
use crate::domain::schedule::{FailurePolicy, InvalidSchedule, Schedule};

/// Settings of the webhooks role. Every key is described in `config/default.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address of the internal HTTP server.
    pub listen: SocketAddr,
    /// `postgres://…` or `sqlite:PATH`.
    pub database_url: SecretString,
    pub database_pool_size: u32,
    /// Whether `http://` is allowed beside `https://`.
    pub allow_http: bool,
    /// Private networks that endpoints may be in, separated by commas: `10.1.0.0/16,fd00::/8`.
    pub allowed_networks: String,
    pub endpoints_per_organization: u32,
    /// The pause before each attempt, in seconds, separated by commas.
    pub retry_schedule_seconds: String,
    pub attempt_deadline_milliseconds: u64,
    /// Maximum number of attempts in flight, per process.
    pub concurrency: usize,
    /// Maximum number of attempts in flight to one endpoint, per process.
    pub concurrency_per_endpoint: usize,
    /// Maximum number of attempts in flight to the endpoints of one organization, per process.
    pub concurrency_per_organization: usize,
    /// Maximum number of test messages and replays that an organization requests in a minute, per process; 0: no limit.
    pub requested_messages_per_minute: u32,
    /// Interval between two polls for due messages; new messages wake the sender of the same process at once.
    pub poll_interval_milliseconds: u64,
    /// How long the previous secret keeps signing after a rotation.
    pub previous_secret_seconds: u32,
    /// An endpoint is disabled after this many days of failed attempts, once five messages were given up; 0: never.
    pub disable_after_days: u32,
    /// Retention period of messages, which the API calls deliveries.
    pub delivery_retention_days: u32,
    pub maintenance_interval_seconds: u64,
}

impl Config {
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
        let failure_policy = FailurePolicy { disable_after_days: self.disable_after_days };
        Schedule::parse(&self.retry_schedule_seconds, failure_policy)
    }

    pub(crate) fn attempt_deadline(&self) -> Duration {
        Duration::from_millis(self.attempt_deadline_milliseconds)
    }
}
