//! Events that were delivered and are not dispatched to a handler yet.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::ReadyChunks;
use tokio::time::Instant;

use super::batch::unpack;
use super::broker::Broker;
use super::failed_deliveries::{DeliveryResult, SettledEvent};
use super::message::{self, Original};
use super::prefetch_window::PrefetchWindow;
use super::session::Session;
use crate::bus::delivery::{Delivery, Subscription};
use crate::bus::{MAX_BATCH_BYTES, cut_short};
use crate::envelope::DecodeError;

/// Messages received at once, before finished calls are looked at again.
const CHUNK: usize = 256;

/// A session and its buffered events.
pub(super) struct DeliveryBuffer {
    session: Arc<Session>,
    messages: ReadyChunks<lapin::Consumer>,
    events: VecDeque<BufferedEvent>,
    /// Events that may have ended the process or the connection before.
    cut_short_twice: Vec<SettledEvent>,
    window: PrefetchWindow,
}

/// The next event of the queue of events that are handled alone.
pub(super) enum AloneDelivery {
    None,
    /// To be handled now.
    Event(Vec<BufferedEvent>),
    /// The process or the connection ended while it was handled alone.
    CutShort(Vec<SettledEvent>),
}

pub(super) struct BufferedEvent {
    /// The delivery tag of its message.
    pub(super) tag: u64,
    /// All events of that message.
    message_events: usize,
    pub(super) original: Original,
    pub(super) event: Result<Delivery, DecodeError>,
}

impl BufferedEvent {
    pub(super) fn bytes(&self) -> usize {
        self.original.payload.len()
    }
}

fn settled(events: Vec<BufferedEvent>, result: impl Fn() -> DeliveryResult) -> Vec<SettledEvent> {
    let settle = |BufferedEvent { tag, original, .. }| SettledEvent { tag, original, result: result() };
    events.into_iter().map(settle).collect()
}

impl DeliveryBuffer {
    /// Connects, declares the queues of the subscription and starts to consume.
    pub(super) async fn connect(broker: &Broker, subscription: &Subscription) -> Result<Self, String> {
        let session = Session::connect(broker, subscription).await?;
        let window = PrefetchWindow::new(subscription.max_in_flight, broker.events_per_message);
        let messages = session.consume(window.prefetch()).await?.ready_chunks(CHUNK);
        Ok(Self {
            session: Arc::new(session),
            messages,
            events: VecDeque::new(),
            cut_short_twice: Vec::new(),
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

    /// The next events, in order of delivery; at most [`MAX_BATCH_BYTES`] of several.
    pub(super) fn take(&mut self, limit: usize) -> Vec<BufferedEvent> {
        let mut total = 0;
        let fitting = self.events.iter().take(limit).take_while(|event| {
            total += event.bytes();
            total <= MAX_BATCH_BYTES
        });
        let count = fitting.count().max(1).min(limit);
        self.events.drain(..count.min(self.events.len())).collect()
    }

    pub(super) fn take_cut_short_twice(&mut self) -> Vec<SettledEvent> {
        mem::take(&mut self.cut_short_twice)
    }

    /// The next event that is handled alone.
    pub(super) async fn take_alone(&self) -> Result<AloneDelivery, String> {
        let Some(delivery) = self.session.get_alone().await? else { return Ok(AloneDelivery::None) };
        let was_alone = message::delivery_count(&delivery.properties) > 0;
        let events = self.unpack(delivery);
        let can_wait = |event: &BufferedEvent| event.original.cut_short < cut_short::MAX;
        if was_alone && events.iter().all(can_wait) {
            return Ok(AloneDelivery::CutShort(settled(events, || DeliveryResult::HandleLater)));
        }
        Ok(AloneDelivery::Event(events))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// When the prefetch should be changed; `None` while it is right.
    pub(super) fn resize_due_at(&self, now: Instant) -> Option<Instant> {
        self.window.resize_due_at(self.session.unacked(), now)
    }

    /// Changes the prefetch. AMQP cannot change it for a running consumer, so the consumer is replaced. Buffered events
    /// stay here, except messages beyond the new window: those are requeued for other consumers.
    pub(super) async fn resize(&mut self) -> Result<(), String> {
        self.session.cancel_consumer(self.messages.get_ref().tag()).await?;
        while let Some(deliveries) = self.messages.next().await {
            self.add(deliveries)?;
        }
        self.window.resize(self.session.unacked(), Instant::now());
        while let Some((tag, events)) = self.last_message()
            && self.window.can_requeue(events, self.session.unacked())
        {
            self.session.requeue(tag).await?;
            self.events.truncate(self.events.len() - events);
        }
        self.messages = self.session.consume(self.window.prefetch()).await?.ready_chunks(CHUNK);
        Ok(())
    }

    /// Stops deliveries without waiting for the broker's answer.
    pub(super) async fn cancel(&self) {
        self.session.cancel_consumer_nowait(self.messages.get_ref().tag()).await;
    }

    fn add(&mut self, deliveries: Vec<lapin::Result<lapin::message::Delivery>>) -> Result<(), String> {
        for delivery in deliveries {
            let events = self.unpack(delivery.map_err(|error| error.to_string())?);
            if events.iter().any(|event| event.original.cut_short >= cut_short::ALONE) {
                self.cut_short_twice.extend(settled(events, || DeliveryResult::HandleAlone));
            } else {
                self.events.extend(events);
            }
        }
        Ok(())
    }

    fn unpack(&self, delivery: lapin::message::Delivery) -> Vec<BufferedEvent> {
        let (tag, bytes) = (delivery.delivery_tag, delivery.data.len());
        let unpacked = unpack(&delivery.properties, delivery.data);
        let message_events = unpacked.len();
        self.session.track(tag, message_events, bytes);
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
