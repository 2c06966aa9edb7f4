//! One connection of a consumer, from the first declaration to the first error.

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions,
};
use lapin::types::{FieldTable, ShortString};
use lapin::{Channel, Connection};
use tokio::time::timeout;

use super::outstanding::Outstanding;
use super::window::Held;
use super::{Broker, connection, topology};
use crate::bus::Subscription;

/// For declaring everything, or consuming anew, on a connection that is there.
const DEADLINE: Duration = Duration::from_secs(20);

/// A connection and a channel of its own: what happens to them happens to this consumer alone.
pub(super) struct Session {
    connection: Connection,
    channel: Channel,
    queue: ShortString,
    outstanding: Mutex<Outstanding>,
}

impl Session {
    /// Connects and declares what the subscription needs.
    pub(super) async fn begin(broker: &Broker, subscription: &Subscription) -> Result<Self, String> {
        let connection = broker.connector.connect(&format!("assay consumer {}", subscription.queue)).await?;
        let declared = in_time(async {
            let channel = connection.create_channel().await?;
            topology::declare_subscription(&channel, &broker.names, subscription, &broker.retries.delays)
                .await?;
            Ok(channel)
        });
        let channel = declared.await?;
        let queue = broker.names.queue(subscription.queue);
        Ok(Self { connection, channel, queue, outstanding: Mutex::default() })
    }

    /// Begins to consume. Messages that another consumer of this session has brought do not count.
    pub(super) async fn consume(&self, prefetch: u16) -> Result<lapin::Consumer, String> {
        let begun = in_time(async {
            self.channel.basic_qos(prefetch, BasicQosOptions::default()).await?;
            let options = BasicConsumeOptions::default();
            self.channel.basic_consume(self.queue.clone(), "".into(), options, FieldTable::default()).await
        });
        begun.await
    }

    /// Ends a consumer: its stream ends after what the broker has sent. What it brought stays ours.
    pub(super) async fn end_consumer(&self, consumer_tag: ShortString) -> Result<(), String> {
        in_time(self.channel.basic_cancel(consumer_tag, BasicCancelOptions::default())).await
    }

    /// Remembers a message of so many events.
    pub(super) fn hand_over(&self, tag: u64, events: usize) {
        self.lock_outstanding().add(tag, events);
    }

    /// Notes one settled event for each tag, and acknowledges the messages that are complete.
    /// An error means that the session is over and that the broker delivers again what it has not heard of.
    /// Must not be called by two at once: the one's frame could cover what the other still has to write.
    pub(super) async fn settle(&self, tags: &[u64]) -> Result<(), String> {
        let acknowledgements = self.lock_outstanding().settle(tags);
        for (tag, multiple) in acknowledgements {
            let acknowledged = self.channel.basic_ack(tag, BasicAckOptions { multiple }).await;
            acknowledged.map_err(|error| format!("delivery was not acknowledged: {error}"))?;
        }
        Ok(())
    }

    /// Gives a message back to the front of its queue. Nobody may have begun with an event of it.
    pub(super) async fn give_back(&self, tag: u64) -> Result<(), String> {
        let options = BasicNackOptions { multiple: false, requeue: true };
        let given_back = self.channel.basic_nack(tag, options).await;
        given_back.map_err(|error| format!("delivery was not given back: {error}"))?;
        // Not before: until the broker is told, an acknowledgement must not cover it.
        self.lock_outstanding().remove(tag);
        Ok(())
    }

    pub(super) fn held(&self) -> Held {
        self.lock_outstanding().held()
    }

    /// Whether the broker is still there.
    pub(super) fn is_alive(&self) -> bool {
        self.channel.status().connected() && self.connection.status().connected()
    }

    /// Asks for no more deliveries.
    pub(super) async fn cancel(&self, consumer_tag: ShortString) {
        let cancelled = self.channel.basic_cancel(consumer_tag, BasicCancelOptions { nowait: true }).await;
        if let Err(error) = cancelled {
            tracing::debug!(%error, "consumer was not cancelled");
        }
    }

    /// Gives back what was delivered and not acknowledged.
    pub(super) async fn end(&self) {
        connection::close(&self.connection).await;
    }

    /// It is only changed by calls that do not panic.
    fn lock_outstanding(&self) -> MutexGuard<'_, Outstanding> {
        self.outstanding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn in_time<T>(asked: impl Future<Output = lapin::Result<T>>) -> Result<T, String> {
    let answered = timeout(DEADLINE, asked).await;
    let answered = answered.map_err(|_| format!("broker did not answer within {DEADLINE:?}"))?;
    answered.map_err(|error| error.to_string())
}
