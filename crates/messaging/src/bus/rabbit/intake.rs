//! From messages to events: what a session has brought and no handler has yet.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::ReadyChunks;
use tokio::time::Instant;

use super::Broker;
use super::batch::{Original, unpack};
use super::session::Session;
use super::window::Window;
use crate::bus::{Delivery, Subscription};
use crate::envelope::DecodeError;

/// Messages that are taken in before the work in hand is looked after again.
const CHUNK: usize = 256;

/// A session and the events that it has brought.
pub(super) struct Intake {
    session: Arc<Session>,
    messages: ReadyChunks<lapin::Consumer>,
    waiting: VecDeque<Taken>,
    window: Window,
}

/// An event that is to be handled.
pub(super) struct Taken {
    /// The delivery tag of its message.
    pub(super) tag: u64,
    /// How many events came with that message.
    of: usize,
    pub(super) original: Original,
    pub(super) event: Result<Delivery, DecodeError>,
}

impl Intake {
    /// Connects, declares what the subscription needs and begins to consume.
    pub(super) async fn begin(broker: &Broker, subscription: &Subscription) -> Result<Self, String> {
        let session = Session::begin(broker, subscription).await?;
        let window = Window::new(subscription.max_in_flight, broker.events_per_message);
        let messages = session.consume(window.prefetch()).await?.ready_chunks(CHUNK);
        Ok(Self { session: Arc::new(session), messages, waiting: VecDeque::new(), window })
    }

    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Waits for messages. An error says that the session is over. Can be dropped at any time.
    pub(super) async fn receive(&mut self) -> Result<(), String> {
        match self.messages.next().await {
            Some(deliveries) => self.add(deliveries),
            None => Err("broker has cancelled the consumer".to_owned()),
        }
    }

    /// The next events, in the order in which they came.
    pub(super) fn take(&mut self, at_most: usize) -> Vec<Taken> {
        self.waiting.drain(..at_most.min(self.waiting.len())).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// From when on the session should hold more messages, or fewer.
    pub(super) fn misfits_from(&self, now: Instant) -> Option<Instant> {
        self.window.misfits_from(self.session.held(), now)
    }

    /// Makes the session hold more messages, or fewer: a consumer's prefetch cannot be changed, so another one takes
    /// its place. What the session has brought stays here, but for messages that others had better take.
    pub(super) async fn resize(&mut self) -> Result<(), String> {
        self.session.end_consumer(self.messages.get_ref().tag()).await?;
        while let Some(deliveries) = self.messages.next().await {
            self.add(deliveries)?;
        }
        self.window.change(self.session.held(), Instant::now());
        while let Some((tag, events)) = self.last_message()
            && self.window.can_spare(events, self.session.held())
        {
            self.session.give_back(tag).await?;
            self.waiting.truncate(self.waiting.len() - events);
        }
        self.messages = self.session.consume(self.window.prefetch()).await?.ready_chunks(CHUNK);
        Ok(())
    }

    /// Asks for no more deliveries.
    pub(super) async fn cancel(&self) {
        self.session.cancel(self.messages.get_ref().tag()).await;
    }

    fn add(&mut self, deliveries: Vec<lapin::Result<lapin::message::Delivery>>) -> Result<(), String> {
        for delivery in deliveries {
            let delivery = delivery.map_err(|error| error.to_string())?;
            let tag = delivery.delivery_tag;
            let events = unpack(&delivery.properties, delivery.data);
            let of = events.len();
            self.session.hand_over(tag, of);
            let taken = events.into_iter().map(|unpacked| Taken {
                tag,
                of,
                original: unpacked.original,
                event: unpacked.event,
            });
            self.waiting.extend(taken);
        }
        Ok(())
    }

    /// The tag of the message that came last, and its number of events, if all of them are still here.
    fn last_message(&self) -> Option<(u64, usize)> {
        let last = self.waiting.back()?;
        let first = self.waiting.get(self.waiting.len().checked_sub(last.of)?)?;
        (first.tag == last.tag).then_some((last.tag, last.of))
    }
}
