//! Events that were delivered and are not dispatched to a handler yet.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::ReadyChunks;
use tokio::time::Instant;

use super::batch::unpack;
use super::broker::Broker;
use super::failed_deliveries::{DeliveryResult, UnsettledEvent};
use super::message::{self, Original};
use super::prefetch_window::PrefetchWindow;
use super::session::Session;
use super::unacked_messages::Source;
use crate::bus::MAX_BATCH_BYTES;
use crate::bus::cut_short::{GIVE_UP_THRESHOLD, ISOLATION_THRESHOLD};
use crate::bus::delivery::{Delivery, Subscription};
use crate::envelope::DecodeError;

/// Maximum number of messages received at once, before finished calls are handled.
const MAX_RECEIVED: usize = 256;

/// A session and its buffered events.
pub(super) struct DeliveryBuffer {
    session: Arc<Session>,
    messages: ReadyChunks<lapin::Consumer>,
    events: VecDeque<BufferedEvent>,
    /// Events for the isolation queue.
    to_isolate: Vec<UnsettledEvent>,
    window: PrefetchWindow,
}

/// The events of the next message of the isolation queue.
pub(super) enum IsolatedDelivery {
    None,
    /// To be handled now, or given up by the handler call.
    Handle(Vec<BufferedEvent>),
    /// The previous delivery from the isolation queue ended with the process or the connection.
    HandleLater(Vec<UnsettledEvent>),
}

pub(super) struct BufferedEvent {
    /// The delivery tag of its message.
    pub(super) tag: u64,
    /// Number of events in that message.
    message_events: usize,
    pub(super) original: Original,
    pub(super) event: Result<Delivery, DecodeError>,
}

impl BufferedEvent {
    pub(super) fn bytes(&self) -> usize {
        self.original.payload.len()
    }
}

fn with_result(events: Vec<BufferedEvent>, result: impl Fn() -> DeliveryResult) -> Vec<UnsettledEvent> {
    let unsettled = |BufferedEvent { tag, original, .. }| UnsettledEvent { tag, original, result: result() };
    events.into_iter().map(unsettled).collect()
}

impl DeliveryBuffer {
    /// Connects, declares the queues of the subscription and starts to consume.
    pub(super) async fn connect(broker: &Broker, subscription: &Subscription) -> Result<Self, String> {
        let session = Session::connect(broker, subscription).await?;
        let window = PrefetchWindow::new(subscription.max_in_flight, broker.events_per_message);
        let messages = session.consume(window.prefetch()).await?.ready_chunks(MAX_RECEIVED);
        Ok(Self {
            session: Arc::new(session),
            messages,
            events: VecDeque::new(),
            to_isolate: Vec::new(),
            window,
        })
    }

    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Waits for messages. An error ends the session. Cancel-safe.
    pub(super) async fn receive(&mut self) -> Result<(), String> {
        match self.messages.next().await {
            Some(deliveries) => self.add(deliveries),
            None => Err("broker has cancelled the consumer".to_owned()),
        }
    }

    /// Takes at most `limit` events in order of delivery, with at most [`MAX_BATCH_BYTES`] unless the first one is larger.
    pub(super) fn take(&mut self, limit: usize) -> Vec<BufferedEvent> {
        let mut total = 0;
        let fitting = self.events.iter().take(limit).take_while(|event| {
            total += event.bytes();
            total <= MAX_BATCH_BYTES
        });
        let count = fitting.count().max(1).min(limit);
        self.events.drain(..count.min(self.events.len())).collect()
    }

    pub(super) fn take_events_to_isolate(&mut self) -> Vec<UnsettledEvent> {
        mem::take(&mut self.to_isolate)
    }

    /// Takes the next message of the isolation queue.
    pub(super) async fn take_isolated(&self) -> Result<IsolatedDelivery, String> {
        let Some(delivery) = self.session.get_isolated().await? else { return Ok(IsolatedDelivery::None) };
        let was_delivered_before = message::delivery_count(&delivery.properties) > 0;
        let events = self.unpack(delivery, Source::IsolationQueue);
        // An event that is given up goes to a handler call, which calls `Handler::give_up`.
        let is_given_up = events.iter().any(|event| event.original.times_cut_short >= GIVE_UP_THRESHOLD);
        if was_delivered_before && !is_given_up {
            return Ok(IsolatedDelivery::HandleLater(with_result(events, || DeliveryResult::HandleLater)));
        }
        Ok(IsolatedDelivery::Handle(events))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// When the prefetch should be changed; `None` while it is right.
    pub(super) fn resize_due_at(&self, now: Instant) -> Option<Instant> {
        self.window.resize_due_at(self.session.unacked_counts(), now)
    }

    /// Changes the prefetch. AMQP cannot change it for a running consumer, so the consumer is replaced. Buffered events
    /// stay here, except messages that take too much memory: those are requeued.
    pub(super) async fn resize(&mut self) -> Result<(), String> {
        self.session.cancel_consumer(self.messages.get_ref().tag()).await?;
        while let Some(deliveries) = self.messages.next().await {
            self.add(deliveries)?;
        }
        self.window.resize(self.session.unacked_counts(), Instant::now());
        while let Some((tag, events)) = self.last_message()
            && self.window.must_requeue(self.session.unacked_counts())
        {
            self.session.requeue(tag).await?;
            self.events.truncate(self.events.len() - events);
        }
        self.messages = self.session.consume(self.window.prefetch()).await?.ready_chunks(MAX_RECEIVED);
        Ok(())
    }

    /// Stops deliveries without waiting for the broker's answer.
    pub(super) async fn cancel(&self) {
        self.session.cancel_consumer_nowait(self.messages.get_ref().tag()).await;
    }

    fn add(&mut self, deliveries: Vec<lapin::Result<lapin::message::Delivery>>) -> Result<(), String> {
        for delivery in deliveries {
            let events = self.unpack(delivery.map_err(|error| error.to_string())?, Source::Consumer);
            if events.iter().any(|event| event.original.times_cut_short >= ISOLATION_THRESHOLD) {
                self.to_isolate.extend(with_result(events, || DeliveryResult::Isolate));
            } else {
                self.events.extend(events);
            }
        }
        Ok(())
    }

    fn unpack(&self, delivery: lapin::message::Delivery, source: Source) -> Vec<BufferedEvent> {
        let (tag, bytes) = (delivery.delivery_tag, delivery.data.len());
        let unpacked = unpack(&delivery.properties, delivery.data);
        let message_events = unpacked.len();
        self.session.track(tag, message_events, bytes, source);
        let buffered = unpacked.into_iter().map(|unpacked| BufferedEvent {
            tag,
            message_events,
            original: unpacked.original,
            event: unpacked.event,
        });
        buffered.collect()
    }

    /// The tag of the message that came last and its number of events, if all of them are still buffered.
    fn last_message(&self) -> Option<(u64, usize)> {
        let last = self.events.back()?;
        let first = self.events.get(self.events.len().checked_sub(last.message_events)?)?;
        (first.tag == last.tag).then_some((last.tag, last.message_events))
    }
}
