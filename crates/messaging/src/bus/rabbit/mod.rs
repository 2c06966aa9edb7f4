//! The bus on RabbitMQ 3.10 or later.
//!
//! lapin's own recovery stays off: it leaves consumers silent for tens of seconds and does not cover errors of a
//! channel. Every connection here is given up on the first error and made anew, topology included.

mod batch;
mod connection;
mod consumer;
mod dead_letters;
mod intake;
mod message;
mod names;
mod outstanding;
mod publisher;
mod session;
mod settle;
mod topology;
mod window;
mod work;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;

use self::connection::Connector;
use self::consumer::Consumer;
use self::names::Names;
use self::publisher::{Publisher, SendError};
use super::dead_letters::{DeadLetter, DeadLetterDecision, DeadLetterError, DeadLetterReview};
use super::in_hand::InHand;
use super::{BusError, Handler, PublishError, Subscription};
use crate::envelope::OutgoingEvent;
use crate::settings::{BusSettings, RetryDelay};

/// Publishers and consumers on one broker.
pub(super) struct RabbitBus {
    broker: Arc<Broker>,
}

/// What publishing and consuming share.
struct Broker {
    connector: Connector,
    names: Names,
    publisher: Publisher,
    retries: Retries,
    /// Published together, at most.
    events_per_message: usize,
    consumers: Consumers,
    in_hand: InHand,
}

/// How often, and after which delays, a delivery is attempted.
struct Retries {
    delays: Vec<RetryDelay>,
    max_attempts: u32,
}

/// How many consumers this process has, and how many of them are connected.
#[derive(Default)]
struct Consumers {
    running: AtomicUsize,
    connected: AtomicUsize,
}

impl RabbitBus {
    pub(super) fn open(settings: &BusSettings, in_hand: InHand) -> Result<Self, BusError> {
        let connector = Connector::parse(settings.url.expose_secret())?;
        let names = Names::parse(&settings.namespace)?;
        let publisher = Publisher::new(connector.clone(), names.clone());
        let retries = Retries { delays: settings.retry_delays.clone(), max_attempts: settings.max_attempts };
        let events_per_message = usize::from(settings.events_per_message);
        let consumers = Consumers::default();
        let broker = Broker { connector, names, publisher, retries, events_per_message, consumers, in_hand };
        Ok(Self { broker: Arc::new(broker) })
    }

    pub(super) async fn publish(&self, events: &[OutgoingEvent]) -> Vec<Result<(), PublishError>> {
        let exchange = self.broker.names.exchange();
        let (messages, places): (Vec<_>, Vec<_>) =
            batch::pack(events, self.broker.events_per_message, &exchange).into_iter().unzip();
        let results = self.broker.publisher.send(&messages).await;
        // What became of a message became of each of its events.
        let mut by_place: Vec<(usize, &Result<(), SendError>)> = places
            .iter()
            .zip(&results)
            .flat_map(|(places, result)| places.iter().map(move |place| (*place, result)))
            .collect();
        by_place.sort_unstable_by_key(|(place, _)| *place);
        events
            .iter()
            .zip(by_place)
            .map(|(event, (_, result))| publish_result(event, result.clone()))
            .collect()
    }

    pub(super) async fn consume(
        &self,
        subscription: Subscription,
        handler: Arc<dyn Handler>,
        stop: CancellationToken,
    ) {
        let _running = Counted::new(&self.broker.consumers.running);
        Consumer::new(self.broker.clone(), subscription, handler).run(&stop).await;
    }

    pub(super) async fn ping(&self) -> Result<(), String> {
        let running = self.broker.consumers.running.load(Ordering::SeqCst);
        let connected = self.broker.consumers.connected.load(Ordering::SeqCst);
        if connected < running {
            return Err(format!("{connected} of {running} consumers are connected"));
        }
        self.broker.publisher.ping().await
    }

    pub(super) async fn review_dead_letters(
        &self,
        queue: &str,
        limit: u64,
        decide: &mut (dyn FnMut(&DeadLetter) -> DeadLetterDecision + Send),
    ) -> Result<DeadLetterReview, DeadLetterError> {
        self.broker.review_dead_letters(queue, limit, decide).await
    }
}

/// One more as long as it lives.
struct Counted<'c>(&'c AtomicUsize);

impl<'c> Counted<'c> {
    fn new(counter: &'c AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::SeqCst);
        Self(counter)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn publish_result(event: &OutgoingEvent, result: Result<(), SendError>) -> Result<(), PublishError> {
    result.map_err(|error| match error {
        SendError::Unavailable(reason) => PublishError::Unavailable(reason),
        SendError::Unroutable => PublishError::Unroutable { topic: event.topic.clone() },
    })
}
