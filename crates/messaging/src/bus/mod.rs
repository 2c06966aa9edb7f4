//! The bus: publishing and consuming, on RabbitMQ or inside one process.

mod dead_letters;
mod delivery;
mod in_flight;
mod invoke;
mod local;
mod rabbit;

use std::sync::Arc;
use std::time::Duration;

use assay_contracts::event::Topic;
use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;

pub use self::dead_letters::{DeadLetter, DeadLetterDecision, DeadLetterError, DeadLetterReview};
pub use self::delivery::{Delivery, Handler, Outcome};
use self::in_flight::InFlight;
use self::local::LocalBus;
use self::rabbit::RabbitBus;
use crate::envelope::OutgoingEvent;
use crate::metrics;
use crate::settings::BusSettings;

/// Far beyond the point where larger batches still pay.
const MAX_EVENTS_PER_MESSAGE: u16 = 1_000;

/// Connects producers and consumers. Cheap to clone; clones share connections and state.
#[derive(Clone)]
pub struct Bus {
    kind: Arc<Kind>,
    in_flight: InFlight,
    handling_limit: Duration,
}

enum Kind {
    Local(LocalBus),
    Rabbit(RabbitBus),
}

/// Invalid settings of the bus.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// `bus.url` is neither RabbitMQ's nor the local bus's.
    #[error("bus.url must begin with amqp://, amqps:// or be local:")]
    UnknownScheme,
    /// `bus.url` cannot be parsed. The message does not repeat it, because it holds a password.
    #[error("bus.url cannot be parsed: {0}")]
    InvalidUrl(String),
    /// A setting is out of its range.
    #[error("{0}")]
    InvalidSetting(&'static str),
}

/// An event was not published. Its producer keeps it, and retries later unless it was rejected.
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

/// A queue and its limits. All processes that consume the same queue share its events.
#[derive(Debug, Clone, Copy)]
pub struct Subscription {
    /// Name of the queue without the namespace, as in `scoring-worker.conversation-accepted`.
    pub queue: &'static str,
    /// The topics bound to it.
    pub topics: &'static [Topic],
    /// Most deliveries in one call of the handler.
    pub max_batch: usize,
    /// Most deliveries in flight in this process. On RabbitMQ the prefetch is about as many events, but at least two
    /// messages, each of which may hold several.
    pub max_in_flight: usize,
}

impl Bus {
    /// Does not connect: the broker may come up later.
    ///
    /// # Errors
    /// When a setting is invalid.
    pub fn open(settings: &BusSettings) -> Result<Self, BusError> {
        if settings.max_attempts == 0 {
            return Err(BusError::InvalidSetting("bus.max_attempts must be at least 1"));
        }
        if settings.retry_delays.is_empty() {
            return Err(BusError::InvalidSetting("bus.retry_delays_ms must hold at least one delay"));
        }
        if !(1..=MAX_EVENTS_PER_MESSAGE).contains(&settings.events_per_message) {
            return Err(BusError::InvalidSetting("bus.events_per_message must be 1 to 1000"));
        }
        metrics::describe();
        let in_flight = InFlight::default();
        let kind = match settings.url.expose_secret().split_once(':') {
            Some(("local", "")) => Kind::Local(LocalBus::new(settings.max_attempts, in_flight.clone())),
            Some(("amqp" | "amqps", _)) => Kind::Rabbit(RabbitBus::open(settings, in_flight.clone())?),
            _ => return Err(BusError::UnknownScheme),
        };
        let handling_limit = Duration::from_secs(settings.handling_limit_seconds);
        Ok(Self { kind: Arc::new(kind), in_flight, handling_limit })
    }

    /// Publishes events; the results are in the same order. `Ok` means that the broker has confirmed the event, or, on
    /// the local bus, that every queue of its topic has handled it.
    pub async fn publish(&self, events: &[OutgoingEvent]) -> Vec<Result<(), PublishError>> {
        match &*self.kind {
            Kind::Local(local) => local.publish(events).await,
            Kind::Rabbit(rabbit) => rabbit.publish(events).await,
        }
    }

    /// Consumes a queue until `stop` is cancelled, then finishes and acknowledges the deliveries in flight. Reconnects
    /// after outages: every failure is retried. A task of `Phase::Consume`.
    pub async fn consume(
        &self,
        subscription: Subscription,
        handler: Arc<dyn Handler>,
        stop: CancellationToken,
    ) {
        metrics::register_queue(subscription.queue);
        match &*self.kind {
            Kind::Local(local) => local.consume(subscription, handler, stop).await,
            Kind::Rabbit(rabbit) => rabbit.consume(subscription, handler, stop).await,
        }
    }

    /// Whether the bus is connected; for readiness.
    ///
    /// # Errors
    /// When it is not, with the reason for the log.
    pub async fn ping(&self) -> Result<(), String> {
        match &*self.kind {
            Kind::Local(_) => Ok(()),
            Kind::Rabbit(rabbit) => rabbit.ping().await,
        }
    }

    /// Whether no handler of `queue` (named as in [`Subscription`]) in this process is stuck; for readiness.
    ///
    /// # Errors
    /// When deliveries have been in flight for longer than `handling_limit_seconds`, with their age for the log.
    pub fn check_handling(&self, queue: &'static str) -> Result<(), String> {
        match self.in_flight.oldest_age(queue) {
            Some(age) if age > self.handling_limit => {
                Err(format!("deliveries of {queue} have been in flight for {} s", age.as_secs()))
            }
            _ => Ok(()),
        }
    }

    /// Calls `decide` for the dead letters of `queue` (named as in [`Subscription`]), oldest first, `limit` at most, and
    /// applies its decisions.
    ///
    /// # Errors
    /// When the queue does not exist, the broker is unavailable, or the bus is a local one.
    pub async fn review_dead_letters(
        &self,
        queue: &str,
        limit: u64,
        mut decide: impl FnMut(&DeadLetter) -> DeadLetterDecision + Send,
    ) -> Result<DeadLetterReview, DeadLetterError> {
        match &*self.kind {
            Kind::Local(_) => Err(DeadLetterError::LocalBus),
            Kind::Rabbit(rabbit) => rabbit.review_dead_letters(queue, limit, &mut decide).await,
        }
    }
}
