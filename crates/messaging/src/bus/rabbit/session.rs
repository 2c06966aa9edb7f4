//! One connection of a consumer, from the declaration of its queues to the first error.

use std::future::Future;
use std::sync::Mutex;
use std::time::Duration;

use assay_platform::runtime::LockExt as _;
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicGetOptions, BasicNackOptions,
    BasicQosOptions, QueueDeclareOptions,
};
use lapin::types::{FieldTable, ShortString};
use lapin::{Channel, Connection};
use tokio::time::timeout;

use super::broker::Broker;
use super::prefetch_window::UnackedCounts;
use super::unacked_messages::{Source, UnackedMessages};
use super::{connection, topology};
use crate::bus::delivery::Subscription;

/// How long the broker may take on an open connection to declare the topology, or to answer another request.
const REQUEST_DEADLINE: Duration = Duration::from_secs(20);

/// The connection and the channel of one consumer. They are not shared, so that their errors affect no other consumer.
pub(super) struct Session {
    connection: Connection,
    channel: Channel,
    queue: ShortString,
    isolation_queue: ShortString,
    unacked: Mutex<UnackedMessages>,
}

impl Session {
    /// Connects and declares the queues of the subscription.
    pub(super) async fn connect(broker: &Broker, subscription: &Subscription) -> Result<Self, String> {
        let connection = broker.connector.connect(&format!("assay consumer {}", subscription.queue)).await?;
        let declared = with_deadline(async {
            let channel = connection.create_channel().await?;
            topology::declare_subscription(&channel, &broker.names, subscription, &broker.retries.delays)
                .await?;
            Ok(channel)
        });
        let channel = declared.await?;
        let queue = broker.names.queue(subscription.queue);
        let isolation_queue = broker.names.isolation_queue(subscription.queue);
        Ok(Self { connection, channel, queue, isolation_queue, unacked: Mutex::default() })
    }

    /// Starts a consumer. Unacknowledged messages of an earlier consumer of this session do not count towards `prefetch`.
    pub(super) async fn consume(&self, prefetch: u16) -> Result<lapin::Consumer, String> {
        self.unacked.locked().begin_consumer();
        let started = with_deadline(async {
            self.channel.basic_qos(prefetch, BasicQosOptions::default()).await?;
            let options = BasicConsumeOptions::default();
            self.channel.basic_consume(self.queue.clone(), "".into(), options, FieldTable::default()).await
        });
        started.await
    }

    /// Cancels a consumer: its stream ends after the messages already sent, which stay unacknowledged.
    pub(super) async fn cancel_consumer(&self, consumer_tag: ShortString) -> Result<(), String> {
        with_deadline(self.channel.basic_cancel(consumer_tag, BasicCancelOptions::default())).await
    }

    /// Number of messages in the isolation queue.
    pub(super) async fn count_isolated(&self) -> Result<u32, String> {
        let options = QueueDeclareOptions::durable().passive();
        let queue = self.isolation_queue.clone();
        let declared = self.channel.queue_declare(queue, options, FieldTable::default());
        Ok(with_deadline(declared).await?.message_count())
    }

    /// Takes one message from the isolation queue, to be handled now. A consumer would get messages in advance, and the end of the
    /// process would count for them, too, although they were not being handled.
    pub(super) async fn get_isolated(&self) -> Result<Option<lapin::message::Delivery>, String> {
        let got = self.channel.basic_get(self.isolation_queue.clone(), BasicGetOptions::default());
        Ok(with_deadline(got).await?.map(|got| got.delivery))
    }

    /// Tracks a message of `bytes` that holds `events` events until it is acknowledged.
    pub(super) fn track(&self, tag: u64, events: usize, bytes: usize, source: Source) {
        self.unacked.locked().add(tag, events, bytes, source);
    }

    /// Counts one settled event for each tag, and acknowledges the messages that have no pending event.
    /// On an error the session is over, and the broker redelivers what was not acknowledged.
    /// Must not run concurrently with itself: an ack with `multiple` could cover a tag that the other call has yet to ack,
    /// and the broker closes the channel on a second ack.
    pub(super) async fn ack(&self, tags: &[u64]) -> Result<(), String> {
        let acknowledgements = self.unacked.locked().settle(tags);
        for (tag, multiple) in acknowledgements {
            let acknowledged = self.channel.basic_ack(tag, BasicAckOptions { multiple }).await;
            acknowledged.map_err(|error| format!("delivery was not acknowledged: {error}"))?;
        }
        Ok(())
    }

    /// Returns a message to the front of its queue. None of its events may have been dispatched.
    pub(super) async fn requeue(&self, tag: u64) -> Result<(), String> {
        let options = BasicNackOptions { multiple: false, requeue: true };
        let requeued = self.channel.basic_nack(tag, options).await;
        requeued.map_err(|error| format!("delivery was not requeued: {error}"))?;
        // Only now: while the message is tracked, no ack with `multiple` covers it.
        self.unacked.locked().remove(tag);
        Ok(())
    }

    pub(super) fn unacked_counts(&self) -> UnackedCounts {
        self.unacked.locked().counts()
    }

    pub(super) fn is_alive(&self) -> bool {
        self.channel.status().connected() && self.connection.status().connected()
    }

    /// Stops deliveries without waiting for the broker's answer.
    pub(super) async fn cancel_consumer_nowait(&self, consumer_tag: ShortString) {
        let cancelled = self.channel.basic_cancel(consumer_tag, BasicCancelOptions { nowait: true }).await;
        if let Err(error) = cancelled {
            tracing::debug!(%error, "consumer was not cancelled");
        }
    }

    /// Closes the connection: the broker requeues unacknowledged messages.
    pub(super) async fn close(&self) {
        connection::close(&self.connection).await;
    }
}

async fn with_deadline<T>(request: impl Future<Output = lapin::Result<T>>) -> Result<T, String> {
    let answered = timeout(REQUEST_DEADLINE, request).await;
    let answered = answered.map_err(|_| format!("broker did not answer within {REQUEST_DEADLINE:?}"))?;
    answered.map_err(|error| error.to_string())
}
