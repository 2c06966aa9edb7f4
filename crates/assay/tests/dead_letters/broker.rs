//! RabbitMQ with dead letters.

use std::process::Output;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use assay_messaging::{Bus, BusSettings, Outcome, OutgoingEvent};
use assay_platform::runtime::new_id;
use assay_testkit::eventually;
use lapin::message::BasicGetMessage;
use lapin::options::{
    BasicAckOptions, BasicGetOptions, BasicNackOptions, BasicPublishOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use tokio::time::{sleep, timeout};

use crate::events::{ACCEPTED, Consumer, Recorder, accepted, command, rejection, text};

/// Time limit of one attempt to open a connection and send its first request.
const ATTEMPT: Duration = Duration::from_secs(5);

/// Time limit for a message to arrive in a queue.
const DEADLINE: Duration = Duration::from_secs(20);

/// A message that is no event. Lists must never show its content.
pub const FOREIGN_MESSAGE: &str = r#"{"words":"of a customer"}"#;

/// A namespace of RabbitMQ with dead letters.
pub struct Broker {
    pub bus: Bus,
    namespace: String,
    pub event_ids: Vec<String>,
}

impl Broker {
    /// Two dead letters: a rejected event and a foreign message.
    pub async fn with_dead_letters() -> Result<Self> {
        let event = accepted(new_id())?;
        let broker = Self::of_events(std::slice::from_ref(&event))?;
        let consumer = Consumer::start(&broker.bus, Arc::new(Recorder::answering(rejection())));
        let event = std::slice::from_ref(&event);
        eventually("a queue", || async { Ok(broker.bus.publish(event).await == [Ok(())]) }).await?;
        let (_connection, channel) = broker.channel().await?;
        let queue = broker.queue_name();
        let (options, properties) = (BasicPublishOptions::default(), BasicProperties::default());
        channel.basic_publish("".into(), queue, options, FOREIGN_MESSAGE.as_bytes(), properties).await?;
        let both_are_dead = || async { Ok(broker.list().contains(": 2 dead letters\n")) };
        eventually("the dead letters", both_are_dead).await?;
        consumer.stop().await;
        Ok(broker)
    }

    /// Dead events of one message that reached its delivery limit. The subscription's queue allows a hundred redeliveries,
    /// which take long: the message is moved to a queue that allows one.
    pub async fn with_dead_batch(count: usize) -> Result<Self> {
        let events: Vec<OutgoingEvent> = (0..count).map(|_| accepted(new_id())).collect::<Result<_>>()?;
        let broker = Self::of_events(&events)?;
        broker.declare_queue().await?;
        let published = broker.bus.publish(&events).await;
        ensure!(published.iter().all(Result::is_ok), "{published:?}");
        // The first request of a connection may hang in the client: each attempt opens a new connection.
        let (_connection, channel, limited) = loop {
            if let Ok(opened) = timeout(ATTEMPT, broker.open_limited_queue()).await {
                break opened?;
            }
        };
        let queue = broker.queue_name();
        let batch = next_message(&channel, &queue).await?;
        let options = BasicPublishOptions::default();
        channel
            .basic_publish("".into(), limited.clone(), options, &batch.data, batch.properties.clone())
            .await?;
        batch.acker.ack(BasicAckOptions::default()).await?;
        let requeue = BasicNackOptions { requeue: true, ..BasicNackOptions::default() };
        for _ in 0..2 {
            next_message(&channel, &limited).await?.acker.nack(requeue).await?;
        }
        let listed = format!("scoring-worker.conversation-accepted: {count} dead letters\n");
        let are_dead = || async { Ok(broker.list().contains(&listed)) };
        eventually("the dead letters", are_dead).await?;
        Ok(broker)
    }

    /// By a consumer, which handles an event and is gone when this returns.
    async fn declare_queue(&self) -> Result<()> {
        let handler = Arc::new(Recorder::answering(Outcome::Done));
        let consumer = Consumer::start(&self.bus, handler.clone());
        let event = [accepted(new_id())?];
        eventually("a queue", || async { Ok(self.bus.publish(&event).await == [Ok(())]) }).await?;
        eventually("an event in the queue", || async { Ok(!handler.ids().is_empty()) }).await?;
        consumer.stop().await;
        Ok(())
    }

    /// Declares a queue that dead-letters like that of the subscription, but after one redelivery.
    pub async fn open_limited_queue(&self) -> Result<(Connection, Channel, ShortString)> {
        let (connection, channel) = self.channel().await?;
        let dead_letters = format!("{}.{}.dead", self.namespace, ACCEPTED.queue);
        let mut arguments = FieldTable::default();
        arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
        arguments.insert("x-delivery-limit".into(), AMQPValue::LongLongInt(1));
        arguments.insert("x-dead-letter-exchange".into(), AMQPValue::LongString("".into()));
        arguments.insert("x-dead-letter-routing-key".into(), AMQPValue::LongString(dead_letters.into()));
        let name = ShortString::from(format!("{}.limited", self.namespace));
        channel.queue_declare(name.clone(), QueueDeclareOptions::durable(), arguments).await?;
        Ok((connection, channel, name))
    }

    pub fn of_events(events: &[OutgoingEvent]) -> Result<Self> {
        let url = assay_testkit::services::rabbit()?;
        let namespace = assay_testkit::random_name("operator")?;
        let bus = Bus::open(&BusSettings { namespace: namespace.clone(), ..BusSettings::new(url) })?;
        let event_ids = events.iter().map(|event| event.id().to_string()).collect();
        Ok(Self { bus, namespace, event_ids })
    }

    /// A channel for direct access to the queue.
    pub async fn channel(&self) -> Result<(Connection, Channel)> {
        let url = assay_testkit::services::rabbit()?;
        let connection = Connection::connect(url, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        Ok((connection, channel))
    }

    /// The queue of the subscription.
    pub fn queue_name(&self) -> ShortString {
        format!("{}.{}", self.namespace, ACCEPTED.queue).into()
    }

    /// Runs a command that must succeed. Returns its standard output.
    pub fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.assay(arguments);
        assert!(output.status.success(), "{output:?}");
        text(&output.stdout)
    }

    pub fn assay(&self, arguments: &[&str]) -> Output {
        let url = assay_testkit::services::rabbit().unwrap();
        let variables = [("ASSAY_BUS__URL", url), ("ASSAY_BUS__NAMESPACE", &self.namespace)];
        command().args(arguments).envs(variables).output().unwrap()
    }

    pub fn list(&self) -> String {
        self.succeed(&["dead-letter", "list"])
    }

    /// The id listed for the foreign message, which has none.
    pub fn id_of_foreign_message(&self) -> Result<String> {
        let list = self.list();
        let id = list.split_whitespace().find(|word| word.starts_with("sha256-"));
        Ok(id.context("a message without an id")?.to_owned())
    }
}

/// The next message of a queue, once there is one.
async fn next_message(channel: &Channel, queue: &ShortString) -> Result<BasicGetMessage> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        ensure!(Instant::now() < deadline, "no message in {queue}");
        if let Some(message) = channel.basic_get(queue.clone(), BasicGetOptions::default()).await? {
            return Ok(message);
        }
        sleep(Duration::from_millis(10)).await;
    }
}
