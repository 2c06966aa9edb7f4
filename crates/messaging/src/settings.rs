//! The section `[bus]` of the configuration.

use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;

/// Address and limits of the bus, and its retry policy.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusSettings {
    /// `amqp://USER:PASSWORD@HOST:PORT/VHOST` (or `amqps://…`) for RabbitMQ, `local:` for a bus inside the process.
    pub url: SecretString,
    /// Prefix of the exchange and of all queues: several installations can share one broker.
    pub namespace: String,
    /// Delays before the second attempt, the third, and so on; the last delay applies to all further attempts.
    #[serde(rename = "retry_delays_ms")]
    pub retry_delays: Vec<RetryDelay>,
    /// Attempts before an event becomes a dead letter.
    pub max_attempts: u32,
    /// Most events of one topic in one RabbitMQ message; 1 to 1,000.
    pub events_per_message: u16,
    /// How long deliveries may be in flight before the process is not ready, in seconds.
    pub handling_limit_seconds: u64,
}

/// A delay before the next attempt at an event, configured in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct RetryDelay(u32);

impl RetryDelay {
    /// A delay of `millis` milliseconds.
    pub const fn from_millis(millis: u32) -> Self {
        Self(millis)
    }

    /// The delay in milliseconds.
    pub const fn as_millis(self) -> u32 {
        self.0
    }
}

impl From<RetryDelay> for Duration {
    fn from(delay: RetryDelay) -> Self {
        Self::from_millis(u64::from(delay.0))
    }
}

impl BusSettings {
    /// Settings for the bus at `url`, with the defaults of `config/default.toml`; for tests.
    pub fn new(url: impl Into<SecretString>) -> Self {
        Self {
            url: url.into(),
            namespace: "assay".to_owned(),
            retry_delays: [1_000, 10_000, 60_000, 300_000].map(RetryDelay).to_vec(),
            max_attempts: 28,
            events_per_message: 64,
            handling_limit_seconds: 300,
        }
    }
}
