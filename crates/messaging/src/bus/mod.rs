//! Publishing and consuming, on RabbitMQ or inside the process.

mod dead_letters;
mod delivery;
mod handling;
mod in_hand;
mod local;
mod rabbit;

use std::sync::Arc;
use std::time::Duration;

use assay_contracts::event::Topic;
use assay_platform::runtime::BoxError;
use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;

pub use self::dead_letters::{DeadLetter, DeadLetterDecision, DeadLetterError, DeadLetterReview};
pub use self::delivery::{Delivery, Handler, Outcome};
use self::in_hand::InHand;
use self::local::LocalBus;
use self::rabbit::RabbitBus;
use crate::envelope::OutgoingEvent;
use crate::metrics;
use crate::settings::BusSettings;

/// Many more than are worth it.
const MAX_EVENTS_PER_MESSAGE: u16 = 1_000;

/// The way from producers to consumers. Cloned freely; all clones are one bus.
#[derive(Clone)]
pub struct Bus {
    kind: Arc<Kind>,
    in_hand: InHand,
    handling_limit: Duration,
}

enum Kind {
    Local(LocalBus),
    Rabbit(RabbitBus),
}

/// The settings of the bus cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// The address is neither RabbitMQ's nor the local bus's.
    #[error("bus.url must begin with amqp://, amqps:// or be local:")]
    UnknownScheme,
    /// The address cannot be parsed. It is not repeated here, because it holds a password.
    #[error("bus.url cannot be parsed: {0}")]
    InvalidUrl(String),
    /// A setting is out of its range.
    #[error("{0}")]
    InvalidSetting(&'static str),
}

/// An event was not handed over. Its producer still has it, and must try again later unless it was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The bus cannot take anything at the moment.
    #[error("bus is unavailable: {0}")]
    Unavailable(String),
    /// No queue takes the event although its topic needs a consumer: none has ever started.
    #[error("no queue takes events {topic}: start a consumer of them")]
    Unroutable {
        /// The topic.
        topic: String,
    },
    /// A consumer in this process could not handle it this time.
    #[error("consumer could not handle the event: {reason}")]
    Retry {
        /// What the consumer said.
        reason: String,
    },
    /// A consumer in this process will never be able to handle it, or has failed too often.
    #[error("consumer rejected the event: {reason}")]
    Rejected {
        /// What the consumer said.
        reason: String,
    },
}

/// A queue and how it is consumed. All processes that consume the same queue share its events.
#[derive(Debug, Clone, Copy)]
pub struct Subscription {
    /// Name of the queue without the namespace, as in `scoring-worker.conversation-accepted`.
    pub queue: &'static str,
    /// The topics it takes.
    pub topics: &'static [Topic],
    /// Deliveries handed to the handler together, at most.
    pub max_batch: usize,
    /// Deliveries being handled at the same time in this process, at most. On RabbitMQ the process
    /// holds about as many, or two messages, of which each may hold several.
    pub max_in_flight: usize,
}

impl Bus {
    /// The bus that `settings` describe. Does not connect: the broker may come up later.
    ///
    /// # Errors
    /// When a setting cannot be used.
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
        let in_hand = InHand::default();
        let kind = match settings.url.expose_secret().split_once(':') {
            Some(("local", "")) => Kind::Local(LocalBus::new(settings.max_attempts, in_hand.clone())),
            Some(("amqp" | "amqps", _)) => Kind::Rabbit(RabbitBus::open(settings, in_hand.clone())?),
            _ => return Err(BusError::UnknownScheme),
        };
        let handling_limit = Duration::from_secs(settings.handling_limit_seconds);
        Ok(Self { kind: Arc::new(kind), in_hand, handling_limit })
    }

    /// Hands over events; the answers are in their order. `Ok` means that the broker has stored the event, or, on
    /// the local bus, that every consumer of its topic has handled it.
    pub async fn publish(&self, events: &[OutgoingEvent]) -> Vec<Result<(), PublishError>> {
        match &*self.kind {
            Kind::Local(local) => local.publish(events).await,
            Kind::Rabbit(rabbit) => rabbit.publish(events).await,
        }
    }

    /// Consumes a queue until `stop` is cancelled: then no more deliveries are taken in, those in the hands of the
    /// handler are finished and settled. Outages are waited out. A task of `Phase::Consume`.
    ///
    /// # Errors
    /// None at present: every failure is waited out.
    pub async fn consume(
        &self,
        subscription: Subscription,
        handler: Arc<dyn Handler>,
        stop: CancellationToken,
    ) -> Result<(), BoxError> {
        metrics::consuming(subscription.queue);
        match &*self.kind {
            Kind::Local(local) => local.consume(subscription, handler, stop).await,
            Kind::Rabbit(rabbit) => rabbit.consume(subscription, handler, stop).await,
        }
        Ok(())
    }

    /// Whether the bus is connected; for readiness.
    ///
    /// # Errors
    /// What is wrong, for the log.
    pub async fn ping(&self) -> Result<(), String> {
        match &*self.kind {
            Kind::Local(_) => Ok(()),
            Kind::Rabbit(rabbit) => rabbit.ping().await,
        }
    }

    /// Whether the handlers of `queue` (named as in [`Subscription`]) in this process come to an end; for readiness.
    ///
    /// # Errors
    /// When one has had deliveries in its hands for longer than `handling_limit_seconds`, for the log.
    pub fn check_handling(&self, queue: &'static str) -> Result<(), String> {
        match self.in_hand.oldest(queue) {
            Some(age) if age > self.handling_limit => {
                Err(format!("deliveries of {queue} have been in hand for {} s", age.as_secs()))
            }
            _ => Ok(()),
        }
    }

    /// Shows the dead letters of `queue` (named as in [`Subscription`]) to `decide`, oldest first and `limit` at most,
    /// and does with each what it says.
    ///
    /// # Errors
    /// When there is no such queue, the broker is not there, or the bus is a local one.
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
