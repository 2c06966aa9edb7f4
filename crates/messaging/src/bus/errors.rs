//! Errors of the bus.

/// Invalid settings of the bus.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// `bus.url` is neither RabbitMQ's nor the local bus's.
    #[error("bus.url must begin with amqp://, amqps:// or be local:")]
    UnknownScheme,
    /// `bus.url` is RabbitMQ's, which this build does not have.
    #[cfg(not(feature = "distributed"))]
    #[error("bus.url is RabbitMQ's, {}", assay_platform::NOT_IN_THIS_BUILD)]
    NoRabbit,
    /// `bus.url` cannot be parsed. The message does not repeat it, because it holds a password.
    #[error("bus.url cannot be parsed: {0}")]
    InvalidUrl(String),
    /// A setting is out of its range.
    #[error("{0}")]
    InvalidSetting(&'static str),
}

/// An event was not published. Its producer keeps it, and retries later unless it was rejected or refused too often.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The bus is down or refuses messages at the moment.
    #[error("bus is unavailable: {0}")]
    Unavailable(String),
    /// The topic needs a consumer and no queue is bound to it: no consumer of it has ever started.
    #[error("no queue takes events {topic}: start a consumer of them")]
    Unroutable {
        /// Name of the topic without a queue.
        topic: String,
    },
    /// The broker refuses this event and takes others: its message is too large, for example.
    #[error("broker refused the event: {reason}")]
    Refused {
        /// The broker's reason.
        reason: String,
    },
    /// Local bus: a consumer failed in this attempt.
    #[error("consumer could not handle the event: {reason}")]
    Retry {
        /// The reason that the consumer gave.
        reason: String,
    },
    /// Local bus: a consumer rejected the event, or its attempts are exhausted.
    #[error("consumer rejected the event: {reason}")]
    Rejected {
        /// The reason that the consumer gave.
        reason: String,
    },
}
