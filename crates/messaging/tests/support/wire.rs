//! Direct access to the broker: messages instead of events.

use anyhow::{Context as _, Result};
use assay_messaging::BusSettings;
use lapin::message::BasicGetMessage;
use lapin::options::{
    BasicAckOptions, BasicGetOptions, BasicNackOptions, BasicPublishOptions, ConfirmSelectOptions,
    QueueDeclareOptions,
};
use lapin::types::{FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use secrecy::ExposeSecret;

/// An AMQP connection that does not belong to the bus.
pub struct Wire {
    channel: Channel,
    namespace: String,
    _connection: Connection,
}

/// A message fetched from its queue.
#[derive(Debug)]
pub struct Message {
    pub content_type: Option<String>,
    pub message_id: Option<String>,
    pub topic: Option<String>,
    pub body: Vec<u8>,
}

impl Wire {
    pub async fn open(settings: &BusSettings) -> Result<Self> {
        let properties = ConnectionProperties::default();
        let connection = Connection::connect(settings.url.expose_secret(), properties).await?;
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(Self { channel, namespace: settings.namespace.clone(), _connection: connection })
    }

    /// Number of ready messages in a queue.
    pub async fn waiting(&self, queue: &str) -> Result<u32> {
        let options = QueueDeclareOptions::durable().passive();
        let declared = self.channel.queue_declare(self.name(queue), options, FieldTable::default()).await?;
        Ok(declared.message_count())
    }

    /// Fetches and acknowledges the next message.
    pub async fn take(&self, queue: &str) -> Result<Message> {
        let message = self.get(queue).await?.context("a message")?;
        message.acker.ack(BasicAckOptions::default()).await?;
        let properties = &message.properties;
        Ok(Message {
            content_type: properties.content_type().as_ref().map(ToString::to_string),
            message_id: properties.message_id().as_ref().map(ToString::to_string),
            topic: properties.kind().as_ref().map(ToString::to_string),
            body: message.data.clone(),
        })
    }

    /// Publishes a message to a queue.
    pub async fn put(&self, queue: &str, content_type: &str, body: &[u8]) -> Result<()> {
        let properties = BasicProperties::default().with_content_type(content_type.into());
        let options = BasicPublishOptions::default();
        let confirm = self.channel.basic_publish("".into(), self.name(queue), options, body, properties);
        confirm.await?.await?;
        Ok(())
    }

    /// Requeues messages as crashing consumers do, until the broker has dead-lettered all of them.
    pub async fn exhaust(&self, queue: &str) -> Result<()> {
        while let Some(message) = self.get(queue).await? {
            message.acker.nack(BasicNackOptions { requeue: true, ..BasicNackOptions::default() }).await?;
        }
        Ok(())
    }

    async fn get(&self, queue: &str) -> Result<Option<BasicGetMessage>> {
        Ok(self.channel.basic_get(self.name(queue), BasicGetOptions::default()).await?)
    }

    fn name(&self, queue: &str) -> ShortString {
        format!("{}.{queue}", self.namespace).into()
    }
}
