//! The section `[gateway]` of the configuration.

use std::net::SocketAddr;

use serde::Deserialize;

/// Settings of the role. Every key is described in `config/default.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Scheme and authority of the public base URL; empty: taken from the request's `Host` header.
    pub public_url: String,
    /// Maximum size of a request body, in bytes.
    pub max_body_bytes: usize,
    /// Deadline for receiving a body, in seconds.
    pub body_deadline_seconds: u64,
    /// Maximum bytes of all buffered bodies together; beyond it the answer is 503.
    pub body_memory_bytes: usize,
    /// Timeout of calls to services, in milliseconds.
    pub service_deadline_milliseconds: u64,
    /// Maximum number of requests in flight; beyond it the answer is 503.
    pub max_in_flight: usize,
    /// Maximum number of requests without a key in flight; beyond it the answer is 503.
    pub max_keyless_in_flight: usize,
    /// Maximum number of downloads in flight, until their bodies are sent; beyond it the answer is 503.
    pub max_downloads: usize,
    /// Maximum number of keys without a grant that are looked up at once; beyond it the answer is 503 after a second.
    pub max_unknown_key_look_ups: usize,
    /// Maximum number of requests for pages of the console in flight; beyond it the answer is 503.
    pub max_console_in_flight: usize,
    /// Maximum number of connections.
    pub max_connections: usize,
    /// A connection is closed when its client reads nothing of a response for this many seconds; 0: never.
    pub response_stall_seconds: u64,
    /// Threads that serve requests.
    pub workers: usize,
    /// How long a resolved API key is cached, in seconds; at most 30.
    pub key_cache_seconds: u64,
    /// Rate limit of each API key, in requests per second; 0: no limit.
    pub rate_limit_per_second: u32,
    /// Whether `/docs` serves the API reference.
    pub docs: bool,
}
