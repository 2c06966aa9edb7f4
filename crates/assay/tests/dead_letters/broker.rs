//! RabbitMQ with dead letters.

use std::process::Output;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use assay_messaging::{Bus, BusSettings};
use assay_platform::runtime::new_id;
use assay_testkit::eventually;
use lapin::options::BasicPublishOptions;
use lapin::{BasicProperties, Connection, ConnectionProperties};

use crate::events::{Consumer, Recorder, SUBSCRIPTION, accepted_event, command, rejection, text};

/// A message that is no event. Lists must never show its content.
pub const FOREIGN_MESSAGE: &str = r#"{"words":"of a customer"}"#;

/// A namespace of RabbitMQ with dead letters.
pub struct Broker {
    pub bus: Bus,
    namespace: String,
    pub event_id: String,
}

impl Broker {
    /// Two dead letters: a rejected event and a foreign message.
    pub async fn with_dead_letters() -> Result<Self> {
        let event = accepted_event(new_id())?;
        let url = assay_testkit::services::rabbit()?;
        let namespace = assay_testkit::random_name("operator")?;
        let bus = Bus::open(&BusSettings { namespace: namespace.clone(), ..BusSettings::new(url) })?;
        let broker = Self { bus, namespace, event_id: event.id().to_string() };
        let consumer = Consumer::start(&broker.bus, Arc::new(Recorder::returning(rejection())));
        let event = std::slice::from_ref(&event);
        eventually("a queue", || async { Ok(broker.bus.publish(event).await == [Ok(())]) }).await?;
        let connection = Connection::connect(url, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        let queue = format!("{}.{}", broker.namespace, SUBSCRIPTION.queue);
        let (options, properties) = (BasicPublishOptions::default(), BasicProperties::default());
        channel
            .basic_publish("".into(), queue.into(), options, FOREIGN_MESSAGE.as_bytes(), properties)
            .await?;
        let both_are_dead = || async { Ok(broker.list().contains(": 2 dead letters\n")) };
        eventually("the dead letters", both_are_dead).await?;
        consumer.stop().await;
        Ok(broker)
    }

    pub fn assay(&self, arguments: &[&str]) -> Output {
        let url = assay_testkit::services::rabbit().unwrap();
        let variables = [("ASSAY_BUS__URL", url), ("ASSAY_BUS__NAMESPACE", &self.namespace)];
        command().args(arguments).envs(variables).output().unwrap()
    }

    pub fn list(&self) -> String {
        let output = self.assay(&["dead-letter", "list"]);
        assert!(output.status.success(), "{output:?}");
        text(&output.stdout)
    }

    /// The id listed for the foreign message, which has none.
    pub fn id_of_foreign_message(&self) -> Result<String> {
        let list = self.list();
        let id = list.split_whitespace().find(|word| word.starts_with("sha256-"));
        Ok(id.context("a message without an id")?.to_owned())
    }
}
