//! Exchange and queues on the broker. Each connection declares what it uses, so that a broker that lost its data is
//! set up again.

use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, ExchangeKind};

use super::names::Names;
use crate::bus::delivery::Subscription;
use crate::settings::RetryDelay;

/// Redeliveries of a message after which the broker dead-letters it, because it may be what crashes the process. Restarts
/// and lost connections cause far fewer.
const DELIVERY_LIMIT: i64 = 100;

/// In effect no limit: a review of dead letters gets and requeues them, and each requeue counts as a delivery.
const DEAD_LETTER_DELIVERY_LIMIT: i64 = 1_000_000_000;

/// Declares what publishers use.
pub(super) async fn declare_exchange(channel: &Channel, names: &Names) -> lapin::Result<()> {
    let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    channel.exchange_declare(names.exchange(), ExchangeKind::Topic, options, FieldTable::default()).await
}

/// Declares what a consumer uses: its queue, isolation queue, retry queues and dead-letter queue.
pub(super) async fn declare_subscription(
    channel: &Channel,
    names: &Names,
    subscription: &Subscription,
    delays: &[RetryDelay],
) -> lapin::Result<()> {
    declare_exchange(channel, names).await?;
    declare_dead_letter_queue(channel, names, subscription.queue).await?;
    let queue = names.queue(subscription.queue);
    let mut arguments = dead_lettering_to(&names.dead_letter_queue(subscription.queue));
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongLongInt(DELIVERY_LIMIT));
    declare_queue(channel, queue.clone(), arguments.clone()).await?;
    declare_queue(channel, names.isolation_queue(subscription.queue), arguments).await?;
    for delay in delays {
        // Back to this queue only, not through the exchange: other queues have their own copy of the event.
        let mut retry_arguments = dead_lettering_to(&queue);
        retry_arguments.insert("x-message-ttl".into(), AMQPValue::LongLongInt(i64::from(delay.as_millis())));
        declare_queue(channel, names.retry_queue(subscription.queue, *delay), retry_arguments).await?;
    }
    for topic in subscription.topics {
        let options = QueueBindOptions::default();
        let arguments = FieldTable::default();
        channel.queue_bind(queue.clone(), names.exchange(), topic.name.into(), options, arguments).await?;
    }
    Ok(())
}

pub(super) async fn declare_dead_letter_queue(
    channel: &Channel,
    names: &Names,
    queue: &str,
) -> lapin::Result<()> {
    let mut arguments = FieldTable::default();
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongLongInt(DEAD_LETTER_DELIVERY_LIMIT));
    declare_queue(channel, names.dead_letter_queue(queue), arguments).await
}

/// Arguments that dead-letter to `queue` through the default exchange, which routes by queue name. `at-least-once`, which
/// needs `reject-publish` (RabbitMQ manual, quorum queues, dead lettering): a message leaves when `queue` has stored it.
fn dead_lettering_to(queue: &ShortString) -> FieldTable {
    let mut arguments = FieldTable::default();
    let mut set = |name: &str, value: &str| {
        arguments.insert(name.into(), AMQPValue::LongString(value.into()));
    };
    set("x-dead-letter-exchange", "");
    set("x-dead-letter-routing-key", queue.as_str());
    set("x-dead-letter-strategy", "at-least-once");
    set("x-overflow", "reject-publish");
    arguments
}

async fn declare_queue(channel: &Channel, name: ShortString, mut arguments: FieldTable) -> lapin::Result<()> {
    arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    channel.queue_declare(name, QueueDeclareOptions::durable(), arguments).await.map(drop)
}
