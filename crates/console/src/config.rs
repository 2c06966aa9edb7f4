//! The section `[console]` of the configuration.

use std::net::SocketAddr;

use serde::Deserialize;

/// Settings of the role. Every key is described in `config/default.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Timeout of calls to services, in milliseconds.
    pub service_deadline_milliseconds: u64,
    /// Failed attempts to sign in with guessable keys that this process allows per minute.
    pub failed_sign_ins_per_minute: u32,
}
