//! Deliveries come twice, in another order, or make no sense.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use assay_testkit::proxy::Weather;
use assay_testkit::query_texts;
use futures_util::StreamExt;
use lapin::options::{
    BasicConsumeOptions, BasicPublishOptions, ConfirmSelectOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties};
use tokio::time::{Instant, sleep, timeout};

use super::Stage;
use crate::site::{LIMIT, To};

/// The exchange of the default namespace.
const EXCHANGE: &str = "assay.events";
/// Commits that are waited for before the consumer is killed, and how long before it is given more to do.
const COMMITS: u64 = 20;
const FROZEN: Duration = Duration::from_secs(5);
/// In which it is.
const THAWED: Duration = Duration::from_secs(2);
/// How long events are overheard, and how many of them at most.
const OVERHEARD: Duration = Duration::from_secs(3);
const OVERHEARD_EVENTS: usize = 300;
/// What is no event, and under which topic it comes.
const POISON: [(&str, &[u8]); 4] = [
    ("conversation.accepted.v1", b"\xff\x00 no text"),
    ("conversation.accepted.v1", b"{\"specversion\":\"1.0\"}"),
    ("conversation.evaluated.v1", b"[]"),
    ("export.requested.v1", b""),
];

/// The consumer's acknowledgements stay in the network while it commits.
pub async fn kill_between_commit_and_ack(stage: &mut Stage<'_>, role: &'static str) -> Result<()> {
    let (schema, table) = match role {
        "scoring-worker" => ("scoring", "evaluations"),
        _ => ("export", "evaluation_rows"),
    };
    let database = stage.site.database(schema)?;
    let count = || -> Result<u64> {
        let rows = query_texts(&database, &format!("SELECT CAST(count(*) AS text) AS value FROM {table}"))?;
        Ok(rows.first().context("no count")?.parse()?)
    };
    let deadline = Instant::now() + LIMIT;
    loop {
        stage.site.links.set((role, To::Rabbit), Weather::FrozenToServer);
        let (before, until) = (count()?, Instant::now() + FROZEN);
        let mut committed = 0;
        while committed < COMMITS && Instant::now() < until {
            sleep(Duration::from_millis(50)).await;
            committed = count()?.saturating_sub(before);
        }
        if committed >= COMMITS {
            break;
        }
        // The broker gives a consumer that has just connected a few messages only, and then more and more.
        ensure!(Instant::now() < deadline, "{role} committed too little");
        stage.site.links.set((role, To::Rabbit), Weather::Fair);
        sleep(THAWED).await;
    }
    stage.site.of_role(role).into_iter().for_each(|instance| instance.kill());
    Ok(())
}

pub async fn redeliver(stage: &mut Stage<'_>) -> Result<()> {
    let (_connection, channel) = connect(stage).await?;
    let options =
        QueueDeclareOptions { exclusive: true, auto_delete: true, ..QueueDeclareOptions::default() };
    let queue = channel.queue_declare("".into(), options, FieldTable::default()).await?;
    let (bind, arguments) = (QueueBindOptions::default(), FieldTable::default());
    channel.queue_bind(queue.name().clone(), EXCHANGE.into(), "#".into(), bind, arguments).await?;
    let options = BasicConsumeOptions { no_ack: true, ..BasicConsumeOptions::default() };
    let mut consumer =
        channel.basic_consume(queue.name().clone(), "".into(), options, FieldTable::default()).await?;
    let mut overheard = Vec::new();
    let end = Instant::now() + OVERHEARD;
    while let Ok(Some(delivery)) =
        timeout(end.saturating_duration_since(Instant::now()), consumer.next()).await
    {
        overheard.push(delivery?);
        if overheard.len() == OVERHEARD_EVENTS {
            break;
        }
    }
    ensure!(!overheard.is_empty(), "no event passed by");
    // Not to be overheard again.
    drop(consumer);
    channel.queue_delete(queue.name().clone(), Default::default()).await?;
    let twice: Vec<usize> = (0..overheard.len()).chain(0..overheard.len()).collect();
    for index in stage.dice.clone().shuffled(twice) {
        let delivery = &overheard[index];
        publish(&channel, delivery.routing_key.as_str(), &delivery.data, delivery.properties.clone()).await?;
    }
    Ok(())
}

pub async fn poison(stage: &mut Stage<'_>) -> Result<()> {
    let (_connection, channel) = connect(stage).await?;
    for (topic, payload) in POISON {
        publish(&channel, topic, payload, BasicProperties::default()).await?;
        *stage.poisoned += 1;
    }
    Ok(())
}

async fn connect(stage: &Stage<'_>) -> Result<(Connection, Channel)> {
    let backends = stage.site.backends.as_ref().context("the standalone has no broker")?;
    let connection = Connection::connect(&backends.amqp_url()?, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    Ok((connection, channel))
}

async fn publish(channel: &Channel, topic: &str, payload: &[u8], properties: BasicProperties) -> Result<()> {
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    let properties = properties.with_delivery_mode(2);
    let confirm = channel.basic_publish(EXCHANGE.into(), topic.into(), options, payload, properties).await?;
    match confirm.await? {
        Confirmation::Ack(None) => Ok(()),
        other => anyhow::bail!("{topic} was not taken: {other:?}"),
    }
}
