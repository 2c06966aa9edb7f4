//! The bus: publishing and consuming, on RabbitMQ or inside one process. The methods that roles call return boxed
//! futures: the body of an `async fn`, and with it the RabbitMQ client, would be compiled again in every role.

mod batch_handler;
pub(crate) mod cut_short;
mod dead_letters;
mod delivery;
mod errors;
mod in_flight;
mod invoke;
mod local;
#[cfg(feature = "distributed")]
mod rabbit;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;

pub use self::batch_handler::{BatchHandler, all_or_each};
pub use self::dead_letters::{DeadLetter, DeadLetterDecision, DeadLetterError, DeadLetterReview};
pub use self::delivery::{Delivery, Handler, Outcome, Subscription};
pub use self::errors::{BusError, PublishError};
use self::in_flight::InFlight;
use self::local::LocalBus;
#[cfg(feature = "distributed")]
use self::rabbit::RabbitBus;
use crate::envelope::OutgoingEvent;
use crate::metrics;
use crate::settings::BusSettings;

/// Maximum bytes of events in one handler call; a larger event is handled alone.
const MAX_BATCH_BYTES: usize = 4 * 1024 * 1024;

/// While the handler calls of a subscription on RabbitMQ have at least this many bytes of events, no other call begins.
const MAX_IN_FLIGHT_BYTES: usize = 16 * 1024 * 1024;

/// Upper limit of `bus.events_per_message`. Far smaller messages already save nearly all of the cost per message.
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
    #[cfg(feature = "distributed")]
    Rabbit(RabbitBus),
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
            #[cfg(not(feature = "distributed"))]
            Some(("amqp" | "amqps", _)) => return Err(BusError::NoRabbit),
            #[cfg(feature = "distributed")]
            Some(("amqp" | "amqps", _)) => Kind::Rabbit(RabbitBus::open(settings, in_flight.clone())?),
            _ => return Err(BusError::UnknownScheme),
        };
        let handling_limit = Duration::from_secs(settings.handling_limit_seconds);
        Ok(Self { kind: Arc::new(kind), in_flight, handling_limit })
    }

    /// Publishes events; the results are in the same order. `Ok` means that the broker has confirmed the event, or, on
    /// the local bus, that every queue of its topic has handled it.
    pub fn publish<'a>(
        &'a self,
        events: &'a [OutgoingEvent],
    ) -> BoxFuture<'a, Vec<Result<(), PublishError>>> {
        match &*self.kind {
            Kind::Local(local) => Box::pin(local.publish(events)),
            #[cfg(feature = "distributed")]
            Kind::Rabbit(rabbit) => Box::pin(rabbit.publish(events)),
        }
    }

    /// Consumes a queue until `stop` is cancelled, then finishes and acknowledges the deliveries in flight. Reconnects
    /// after outages: every failure is retried. A task of `Phase::Consume`.
    pub fn consume(
        &self,
        subscription: Subscription,
        handler: Arc<dyn Handler>,
        stop: CancellationToken,
    ) -> BoxFuture<'_, ()> {
        metrics::register_queue(subscription.queue);
        match &*self.kind {
            Kind::Local(local) => Box::pin(local.consume(subscription, handler, stop)),
            #[cfg(feature = "distributed")]
            Kind::Rabbit(rabbit) => Box::pin(rabbit.consume(subscription, handler, stop)),
        }
    }

    /// Calls a handler with parked events, as deliveries of `queue`.
    pub(crate) async fn handle_parked(
        &self,
        queue: &'static str,
        handler: &dyn Handler,
        deliveries: &mut [Delivery],
    ) -> Vec<Outcome> {
        // No attempt is the last one: the caller returns failed events to the bus, which counts their attempts.
        let max_attempts = u32::MAX;
        invoke::invoke(handler, deliveries, self.in_flight.begin(queue), max_attempts).await
    }

    /// Whether the bus is connected; for readiness.
    ///
    /// # Errors
    /// When it is not, with the reason for the log.
    pub fn ping(&self) -> BoxFuture<'_, Result<(), String>> {
        match &*self.kind {
            Kind::Local(_) => Box::pin(std::future::ready(Ok(()))),
            #[cfg(feature = "distributed")]
            Kind::Rabbit(rabbit) => Box::pin(rabbit.ping()),
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
            Kind::Local(_) => {
                // Without the feature `distributed` the parameters have no other use.
                let _ = (queue, limit, &mut decide);
                Err(DeadLetterError::LocalBus)
            }
            #[cfg(feature = "distributed")]
            Kind::Rabbit(rabbit) => rabbit.review_dead_letters(queue, limit, &mut decide).await,
        }
    }
}
