//! The bus on RabbitMQ 3.10 or later.
//!
//! lapin's own recovery stays off: it leaves consumers silent for tens of seconds and does not cover errors of a
//! channel. Here every connection is closed on the first error and replaced, and the topology declared again.

mod batch;
mod broker;
mod connection;
mod consumer;
mod dead_letters;
mod delivery_buffer;
mod failed_deliveries;
mod handler_call;
mod message;
mod names;
mod prefetch_window;
mod publisher;
mod session;
mod topology;
mod unacked_messages;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use self::broker::{Broker, CountGuard};
use self::consumer::Consumer;
use self::publisher::SendError;
use super::delivery::{Handler, Subscription};
use super::errors::{BusError, PublishError};
use super::in_flight::InFlight;
use crate::envelope::OutgoingEvent;
use crate::settings::BusSettings;

/// Publishers and consumers on one broker.
pub(super) struct RabbitBus {
    broker: Arc<Broker>,
}

impl RabbitBus {
    pub(super) fn open(settings: &BusSettings, in_flight: InFlight) -> Result<Self, BusError> {
        Ok(Self { broker: Arc::new(Broker::open(settings, in_flight)?) })
    }

    pub(super) async fn publish(&self, events: &[OutgoingEvent]) -> Vec<Result<(), PublishError>> {
        let exchange = self.broker.names.exchange();
        let (messages, positions_by_message): (Vec<_>, Vec<_>) =
            batch::pack(events, self.broker.events_per_message, &exchange).into_iter().unzip();
        let results = self.broker.publisher.send(&messages).await;
        // Each event has the result of its message; the results are put back into the order of `events`.
        let mut by_position: Vec<(usize, &Result<(), SendError>)> = positions_by_message
            .iter()
            .zip(&results)
            .flat_map(|(positions, result)| positions.iter().map(move |position| (*position, result)))
            .collect();
        by_position.sort_unstable_by_key(|(position, _)| *position);
        events
            .iter()
            .zip(by_position)
            .map(|(event, (_, result))| publish_result(event, result.clone()))
            .collect()
    }

    pub(super) async fn consume(
        &self,
        subscription: Subscription,
        handler: Arc<dyn Handler>,
        stop: CancellationToken,
    ) {
        let _running = CountGuard::new(&self.broker.consumers.running);
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
}

fn publish_result(event: &OutgoingEvent, result: Result<(), SendError>) -> Result<(), PublishError> {
    result.map_err(|error| match error {
        SendError::Unavailable(reason) => PublishError::Unavailable(reason),
        SendError::Unroutable => PublishError::Unroutable { topic: event.topic.clone() },
        SendError::Refused(reason) => PublishError::Refused { reason },
    })
}
