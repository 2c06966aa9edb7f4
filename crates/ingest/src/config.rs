//! The section `[ingest]` of the configuration.

use std::net::SocketAddr;
use std::time::Duration;

use assay_messaging::outbox::BacklogLimits;
use assay_platform::db::DatabaseSettings;
use secrecy::SecretString;
use serde::Deserialize;

/// Settings of the role. Every key is described in `config/default.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address to listen on, for calls of other roles.
    pub listen: SocketAddr,
    /// `postgres://…` or `sqlite:PATH`.
    pub database_url: SecretString,
    /// Maximum number of connections.
    pub database_pool_size: u32,
    /// Capacity of the import queue; beyond it the answer is 503.
    pub accept_queue: usize,
    /// Maximum number of concurrent write transactions. SQLite always has one.
    pub writers: usize,
    /// Maximum time that a writer waits for a larger batch under load, in milliseconds.
    pub linger_milliseconds: u64,
    /// Maximum time until an import is committed, in milliseconds.
    pub accept_deadline_milliseconds: u64,
    /// Timeout of calls to agent-registry, in milliseconds.
    pub registry_deadline_milliseconds: u64,
    /// Maximum number of cached agent ids.
    pub agent_cache_entries: usize,
    /// Maximum size of a body, in bytes; 0 is replaced by the gateway's limit.
    pub max_body_bytes: usize,
    /// Maximum bytes of all buffered bodies together.
    pub body_memory_bytes: usize,
    /// Maximum age of an unpublished event, in seconds; the role is degraded while one is older.
    pub outbox_age_limit_seconds: u64,
    /// Interval of maintenance, in seconds.
    pub maintenance_interval_seconds: u64,
    /// Age of an unpublished event above which imports are refused, in seconds.
    pub outbox_refusal_age_seconds: u64,
    /// Number of unpublished events at which imports are refused.
    pub outbox_refusal_events: u64,
}

impl Config {
    /// Limits of the outbox backlog beyond which imports are refused.
    pub(crate) fn backlog_limits(&self) -> BacklogLimits {
        BacklogLimits {
            age: Duration::from_secs(self.outbox_refusal_age_seconds),
            events: self.outbox_refusal_events,
        }
    }

    /// The role's database.
    pub fn database(&self) -> DatabaseSettings {
        DatabaseSettings {
            database_url: self.database_url.clone(),
            database_pool_size: self.database_pool_size,
        }
    }
}
