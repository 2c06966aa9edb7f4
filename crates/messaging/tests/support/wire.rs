//! The broker as others see it: messages and not events.

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

/// A connection that knows nothing of the bus.
pub struct Wire {
    channel: Channel,
    namespace: String,
    _connection: Connection,
}

/// A message that was taken from its queue.
#[derive(Debug)]
pub struct Taken {
    pub content_type: Option<String>,
    pub message_id: Option<String>,
    pub kind: Option<String>,
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

    /// Messages in a queue that nobody has taken.
    pub async fn waiting(&self, queue: &str) -> Result<u32> {
        let options = QueueDeclareOptions::durable().passive();
        let declared = self.channel.queue_declare(self.name(queue), options, FieldTable::default()).await?;
        Ok(declared.message_count())
    }

    /// Takes the next message out of a queue.
    pub async fn take(&self, queue: &str) -> Result<Taken> {
        let message = self.get(queue).await?.context("a message")?;
        message.acker.ack(BasicAckOptions::default()).await?;
        let properties = &message.properties;
        Ok(Taken {
            content_type: properties.content_type().as_ref().map(ToString::to_string),
            message_id: properties.message_id().as_ref().map(ToString::to_string),
            kind: properties.kind().as_ref().map(ToString::to_string),
            body: message.data.clone(),
        })
    }

    /// Puts a message into a queue.
    pub async fn put(&self, queue: &str, content_type: &str, body: &[u8]) -> Result<()> {
        let properties = BasicProperties::default().with_content_type(content_type.into());
        let options = BasicPublishOptions::default();
        let confirm = self.channel.basic_publish("".into(), self.name(queue), options, body, properties);
        confirm.await?.await?;
        Ok(())
    }

    /// Does with the messages of a queue what consumers do that end whenever they have one, until the broker has
    /// given up every one of them.
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
