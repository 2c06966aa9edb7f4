//! The section `[ingest]` of the configuration.

use std::net::SocketAddr;
use std::time::Duration;

use assay_messaging::outbox::BacklogLimits;
use assay_platform::db::DatabaseSettings;
use secrecy::SecretString;
use serde::Deserialize;

/// How conversations are accepted. Every key is described in `config/default.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address to listen on, for our other services.
    pub listen: SocketAddr,
    /// `postgres://…` or `sqlite:PATH`.
    pub database_url: SecretString,
    /// Connections at most.
    pub database_pool_size: u32,
    /// Imports that may wait to be written; more are answered 503.
    pub accept_queue: usize,
    /// Transactions that write imports at the same time. SQLite has one whatever is configured.
    pub writers: usize,
    /// How long a writer waits for more imports while many come, in milliseconds.
    pub gathering_milliseconds: u64,
    /// How long an import may wait to be committed, in milliseconds.
    pub accept_deadline_milliseconds: u64,
    /// How long agent-registry may take to answer, in milliseconds.
    pub registry_deadline_milliseconds: u64,
    /// Agents whose ids are remembered.
    pub agent_cache_entries: usize,
    /// Largest body that is read, in bytes; the executable puts the gateway's limit in the place of 0.
    pub max_body_bytes: usize,
    /// Bytes of bodies that are held at the same time, at most.
    pub body_memory_bytes: usize,
    /// Degraded when an event waits to be published for longer, in seconds.
    pub outbox_age_limit_seconds: u64,
    /// Between two rounds of housekeeping, in seconds.
    pub maintenance_interval_seconds: u64,
    /// Imports are refused while an event waits to be published for longer, in seconds.
    pub outbox_refusal_age_seconds: u64,
    /// Imports are refused while so many events wait to be published.
    pub outbox_refusal_events: u64,
}

impl Config {
    /// What may wait in the outbox before imports are refused.
    pub(crate) fn backlog_limits(&self) -> BacklogLimits {
        BacklogLimits {
            age: Duration::from_secs(self.outbox_refusal_age_seconds),
            events: self.outbox_refusal_events,
        }
    }

    /// Where the conversations are kept.
    pub fn database(&self) -> DatabaseSettings {
        DatabaseSettings {
            database_url: self.database_url.clone(),
            database_pool_size: self.database_pool_size,
        }
    }
}
