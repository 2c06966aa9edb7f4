//! The section `[ingest]` of the configuration.

use std::net::SocketAddr;

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
    /// How long an import may wait to be committed, in milliseconds.
    pub accept_deadline_milliseconds: u64,
    /// How long agent-registry may take to answer, in milliseconds.
    pub registry_deadline_milliseconds: u64,
    /// Agents whose ids are remembered.
    pub agent_cache_entries: usize,
    /// Largest body that is read, in bytes; the executable puts the gateway's limit in the place of 0.
    pub max_body_bytes: usize,
    /// Not ready when an event waits to be published for longer, in seconds.
    pub outbox_age_limit_seconds: u64,
    /// Between two rounds of housekeeping, in seconds.
    pub maintenance_interval_seconds: u64,
}

impl Config {
    /// Where the conversations are kept.
    pub fn database(&self) -> DatabaseSettings {
        DatabaseSettings {
            database_url: self.database_url.clone(),
            database_pool_size: self.database_pool_size,
        }
    }
}
