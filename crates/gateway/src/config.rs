//! The section `[gateway]` of the configuration.

use std::net::SocketAddr;

use serde::Deserialize;

/// How the gateway serves the public. Every key is described in `config/default.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Scheme and authority that clients reach the gateway at; empty: as in the request's `Host` header.
    pub public_url: String,
    /// Largest request body, in bytes.
    pub max_body_bytes: usize,
    /// How long a client may take to send a body, in seconds.
    pub body_deadline_seconds: u64,
    /// Bytes of bodies that are held at the same time, at most; beyond it the answer is 503.
    pub body_memory_bytes: usize,
    /// How long a service may take to answer, in milliseconds.
    pub service_deadline_milliseconds: u64,
    /// Requests under way at most; beyond it the answer is 503.
    pub max_in_flight: usize,
    /// Connections at most.
    pub max_connections: usize,
    /// Threads that serve requests.
    pub workers: usize,
    /// How long a resolved API key is remembered, in seconds; at most 30.
    pub key_cache_seconds: u64,
    /// Requests a second that each API key may make; 0: no limit.
    pub rate_limit_per_second: u32,
}
