//! Faults of deliveries: without acknowledgement, duplicated, reordered, malformed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use assay_testkit::proxy::LinkState;
use futures_util::StreamExt;
use lapin::options::{
    BasicConsumeOptions, BasicPublishOptions, ConfirmSelectOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties};
use tokio::time::{Instant, sleep, timeout};

use super::FaultContext;
use crate::cluster::{RECOVERY_LIMIT, Target};

/// The exchange of the default namespace.
const EXCHANGE: &str = "assay.events";
/// The consumer is killed after this many commits. If they take longer than [`FREEZE_TIME`], its link is healed for
/// [`HEALTHY_TIME`] before the next attempt.
const COMMITS: u64 = 20;
/// Enough for [`COMMITS`]: a busy core evaluates two or three conversations a second.
const FREEZE_TIME: Duration = Duration::from_secs(15);
const HEALTHY_TIME: Duration = Duration::from_secs(2);
/// For how long events are captured, and how many at most.
const CAPTURE_TIME: Duration = Duration::from_secs(3);
const MAX_CAPTURED_EVENTS: usize = 300;
/// Invalid messages with their topics.
const POISON: [(&str, &[u8]); 4] = [
    ("conversation.accepted.v1", b"\xff\x00 no text"),
    ("conversation.accepted.v1", b"{\"specversion\":\"1.0\"}"),
    ("conversation.evaluated.v1", b"[]"),
    ("export.requested.v1", b""),
];

/// Holds back the consumer's acknowledgements while it commits, then kills it.
pub async fn kill_between_commit_and_ack(context: &mut FaultContext<'_>, role: &'static str) -> Result<()> {
    let (schema, table) = match role {
        "scoring-worker" => ("scoring", "evaluations"),
        _ => ("export", "evaluation_rows"),
    };
    let deadline = Instant::now() + RECOVERY_LIMIT;
    loop {
        context.cluster.links.set((role, Target::Rabbit), LinkState::FrozenToServer);
        let count_at_freeze = context.cluster.count(schema, table)?;
        let freeze_end = Instant::now() + FREEZE_TIME;
        let mut committed = 0;
        while committed < COMMITS && Instant::now() < freeze_end {
            sleep(Duration::from_millis(50)).await;
            committed = context.cluster.count(schema, table)?.saturating_sub(count_at_freeze);
        }
        if committed >= COMMITS {
            break;
        }
        // The prefetch window of a new consumer starts small: let it grow, then try again.
        ensure!(Instant::now() < deadline, "{role} committed too little");
        context.cluster.links.set((role, Target::Rabbit), LinkState::Healthy);
        sleep(HEALTHY_TIME).await;
    }
    context.cluster.of_role(role).into_iter().for_each(|instance| instance.kill());
    Ok(())
}

pub async fn redeliver(context: &mut FaultContext<'_>) -> Result<()> {
    let (_connection, channel) = connect(context).await?;
    let options =
        QueueDeclareOptions { exclusive: true, auto_delete: true, ..QueueDeclareOptions::default() };
    let queue = channel.queue_declare("".into(), options, FieldTable::default()).await?;
    let (bind, arguments) = (QueueBindOptions::default(), FieldTable::default());
    channel.queue_bind(queue.name().clone(), EXCHANGE.into(), "#".into(), bind, arguments).await?;
    let options = BasicConsumeOptions { no_ack: true, ..BasicConsumeOptions::default() };
    let mut consumer =
        channel.basic_consume(queue.name().clone(), "".into(), options, FieldTable::default()).await?;
    let mut captured = Vec::new();
    let end = Instant::now() + CAPTURE_TIME;
    while let Ok(Some(delivery)) =
        timeout(end.saturating_duration_since(Instant::now()), consumer.next()).await
    {
        captured.push(delivery?);
        if captured.len() == MAX_CAPTURED_EVENTS {
            break;
        }
    }
    ensure!(!captured.is_empty(), "no event was captured");
    // Republished events must not be captured again.
    drop(consumer);
    channel.queue_delete(queue.name().clone(), Default::default()).await?;
    let twice: Vec<usize> = (0..captured.len()).chain(0..captured.len()).collect();
    for index in context.rng.clone().shuffled(twice) {
        let delivery = &captured[index];
        publish(&channel, delivery.routing_key.as_str(), &delivery.data, delivery.properties.clone()).await?;
    }
    Ok(())
}

pub async fn poison(context: &mut FaultContext<'_>) -> Result<()> {
    let (_connection, channel) = connect(context).await?;
    for (topic, payload) in POISON {
        publish(&channel, topic, payload, BasicProperties::default()).await?;
        *context.poisoned += 1;
    }
    Ok(())
}

async fn connect(context: &FaultContext<'_>) -> Result<(Connection, Channel)> {
    let backends = context.cluster.backends.as_ref().context("the standalone has no broker")?;
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
        other => anyhow::bail!("{topic} was not confirmed: {other:?}"),
    }
}
