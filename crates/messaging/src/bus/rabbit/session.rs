//! One connection of a consumer, from the first declaration to the first error.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lapin::options::{BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicQosOptions};
use lapin::types::{FieldTable, ShortString};
use lapin::{Channel, Connection};
use tokio::time::timeout;

use super::{Broker, connection, topology};
use crate::bus::Subscription;

/// For declaring everything on a connection that is there.
const BEGIN_DEADLINE: Duration = Duration::from_secs(20);

/// A connection and a channel of its own: what happens to them happens to this consumer alone.
pub(super) struct Session {
    connection: Connection,
    channel: Channel,
    consumer_tag: ShortString,
    /// Tags of deliveries that were handed over and are not acknowledged.
    outstanding: Mutex<BTreeSet<u64>>,
}

impl Session {
    /// Connects, declares what the subscription needs and begins to consume.
    pub(super) async fn begin(
        broker: &Broker,
        subscription: &Subscription,
    ) -> Result<(Self, lapin::Consumer), String> {
        let connection = broker.connector.connect(&format!("assay consumer {}", subscription.queue)).await?;
        let begun = async {
            let channel = connection.create_channel().await?;
            topology::declare_subscription(&channel, &broker.names, subscription, &broker.retries.delays)
                .await?;
            let prefetch = u16::try_from(subscription.max_in_flight.max(1)).unwrap_or(u16::MAX);
            channel.basic_qos(prefetch, BasicQosOptions::default()).await?;
            let queue = broker.names.queue(subscription.queue);
            let options = BasicConsumeOptions::default();
            let consumer = channel.basic_consume(queue, "".into(), options, FieldTable::default()).await?;
            Ok((channel, consumer))
        };
        let begun = timeout(BEGIN_DEADLINE, begun).await;
        let begun =
            begun.map_err(|_| format!("broker did not declare the queues within {BEGIN_DEADLINE:?}"))?;
        let (channel, consumer) = begun.map_err(|error: lapin::Error| error.to_string())?;
        let consumer_tag = consumer.tag();
        let outstanding = Mutex::default();
        Ok((Self { connection, channel, consumer_tag, outstanding }, consumer))
    }

    /// Remembers that a delivery is being handled.
    pub(super) fn hand_over(&self, tag: u64) {
        self.lock_outstanding().insert(tag);
    }

    /// Acknowledges deliveries: with one frame those below which nothing is outstanding, the others one by one.
    /// An error means that the session is over and that the broker delivers again what it has not heard of.
    /// Must not be called by two at once: the one's frame could cover what the other still has to write.
    pub(super) async fn acknowledge(&self, tags: BTreeSet<u64>) -> Result<(), String> {
        let acknowledgements = self.take_acknowledgements(&tags);
        for (tag, multiple) in acknowledgements {
            let acknowledged = self.channel.basic_ack(tag, BasicAckOptions { multiple }).await;
            acknowledged.map_err(|error| format!("delivery was not acknowledged: {error}"))?;
        }
        Ok(())
    }

    /// Whether the broker is still there.
    pub(super) fn is_alive(&self) -> bool {
        self.channel.status().connected() && self.connection.status().connected()
    }

    /// Asks for no more deliveries.
    pub(super) async fn cancel(&self) {
        let cancelled =
            self.channel.basic_cancel(self.consumer_tag.clone(), BasicCancelOptions { nowait: true }).await;
        if let Err(error) = cancelled {
            tracing::debug!(%error, "consumer was not cancelled");
        }
    }

    /// Gives back what was delivered and not acknowledged.
    pub(super) async fn end(&self) {
        connection::close(&self.connection).await;
    }

    /// Which tags to acknowledge, and whether with all before them.
    fn take_acknowledgements(&self, tags: &BTreeSet<u64>) -> Vec<(u64, bool)> {
        let mut outstanding = self.lock_outstanding();
        outstanding.retain(|tag| !tags.contains(tag));
        let first_outstanding = outstanding.first().copied().unwrap_or(u64::MAX);
        let together = tags.range(..first_outstanding).next_back().map(|tag| (*tag, true));
        let singly = tags.range(first_outstanding..).map(|tag| (*tag, false));
        together.into_iter().chain(singly).collect()
    }

    /// The set is only changed by calls that do not panic.
    fn lock_outstanding(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.outstanding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
