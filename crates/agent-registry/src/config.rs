//! The section `[registry]` of the configuration.

use std::net::SocketAddr;

use assay_platform::db::DatabaseSettings;
use secrecy::SecretString;
use serde::Deserialize;

/// How the registry is kept. Every key is described in `config/default.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the other services reach this one.
    pub listen: SocketAddr,
    /// `postgres://…` or `sqlite:PATH`.
    pub database_url: SecretString,
    /// Connections at most.
    pub database_pool_size: u32,
    /// Not ready when an event waits to be published for longer, in seconds.
    pub outbox_age_limit_seconds: u64,
}

impl Config {
    /// How the database is opened.
    pub fn database(&self) -> DatabaseSettings {
        DatabaseSettings {
            database_url: self.database_url.clone(),
            database_pool_size: self.database_pool_size,
        }
    }
}
