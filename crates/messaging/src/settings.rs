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
    #[serde(default = "default_namespace")]
    pub namespace: String,
    /// Delays before the second attempt, the third, and so on; the last delay applies to all further attempts.
    #[serde(default = "default_retry_delays", rename = "retry_delays_ms")]
    pub retry_delays: Vec<RetryDelay>,
    /// Attempts before an event becomes a dead letter.
    #[serde(default = "default_max_attempts")]
    pub max_attempts: u32,
    /// Most events of one topic in one RabbitMQ message; 1 to 1,000.
    #[serde(default = "default_events_per_message")]
    pub events_per_message: u16,
    /// How long deliveries may be in flight before the process is not ready, in seconds.
    #[serde(default = "default_handling_limit_seconds")]
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
    /// Settings for the bus at `url`, with the defaults.
    pub fn new(url: impl Into<SecretString>) -> Self {
        Self {
            url: url.into(),
            namespace: default_namespace(),
            retry_delays: default_retry_delays(),
            max_attempts: default_max_attempts(),
            events_per_message: default_events_per_message(),
            handling_limit_seconds: default_handling_limit_seconds(),
        }
    }
}

fn default_namespace() -> String {
    "assay".to_owned()
}

fn default_retry_delays() -> Vec<RetryDelay> {
    [1_000, 10_000, 60_000, 300_000].map(RetryDelay).to_vec()
}

/// Larger messages hardly cost less.
fn default_events_per_message() -> u16 {
    64
}

/// A judge may take a minute for each of its conversations.
fn default_handling_limit_seconds() -> u64 {
    300
}

/// With the delays above: about two hours.
fn default_max_attempts() -> u32 {
    28
}
