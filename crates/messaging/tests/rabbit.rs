//! The bus on RabbitMQ, against a real broker.

mod support;

use std::collections::HashSet;
use std::time::Duration;

use anyhow::Result;
use assay_contracts::event::{ConversationAccepted, Event as _};
use assay_messaging::{Outcome, OutgoingEvent, PublishError, Subscription};
use tokio::time::Instant;

use support::{
    ACCEPTED, AGENTS, Running, Scripted, accepted, agent_created, connected, eventually, publish,
    publish_all, rabbit_bus,
};

#[tokio::test]
async fn published_event_is_delivered_to_every_queue_of_its_topic() -> Result<()> {
    let bus = rabbit_bus()?;
    let (scorer, auditor, other) = (Scripted::done(), Scripted::done(), Scripted::done());
    let consumers = [
        Running::consumer(&bus, ACCEPTED, scorer.clone()),
        Running::consumer(&bus, Subscription { queue: "auditor.accepted", ..ACCEPTED }, auditor.clone()),
        Running::consumer(&bus, AGENTS, other.clone()),
    ];
    connected(&bus).await?;
    let event = accepted();
    publish(&bus, &event).await?;
    scorer.wait_for(1).await?;
    auditor.wait_for(1).await?;
    let delivery = scorer.deliveries().remove(0);
    assert_eq!((delivery.id, delivery.attempt), (event.id(), 1));
    assert_eq!(delivery.topic, ConversationAccepted::TOPIC.name);
    assert_eq!(delivery.decode::<ConversationAccepted>()?.organization_id, delivery.organization_id);
    for consumer in consumers {
        consumer.stop().await?;
    }
    assert!(other.deliveries().is_empty());
    assert_eq!((scorer.deliveries().len(), auditor.deliveries().len()), (1, 1));
    Ok(())
}

#[tokio::test]
async fn event_without_a_required_queue_is_unroutable() -> Result<()> {
    let bus = rabbit_bus()?;
    let unroutable = PublishError::Unroutable { topic: ConversationAccepted::TOPIC.name.to_owned() };
    assert_eq!(bus.publish(&[accepted(), agent_created()]).await, [Err(unroutable), Ok(())]);
    Ok(())
}

/// The broker confirms several messages at once, and lapin then attaches a returned message to any of them.
#[tokio::test]
async fn unroutable_events_of_a_mixed_batch_fail_alone() -> Result<()> {
    let bus = rabbit_bus()?;
    let (handler, consumer) = Running::done(&bus, AGENTS);
    connected(&bus).await?;
    for _ in 0..20 {
        let events: Vec<OutgoingEvent> =
            (0..100).map(|index| if index % 3 == 0 { accepted() } else { agent_created() }).collect();
        let results = bus.publish(&events).await;
        for (index, result) in results.iter().enumerate() {
            assert_eq!(result.is_err(), index % 3 == 0, "event {index}: {result:?}");
        }
    }
    handler.wait_for(20 * 66).await?;
    consumer.stop().await
}

#[tokio::test]
async fn failed_delivery_is_retried_after_its_delay_in_its_queue() -> Result<()> {
    let bus = rabbit_bus()?;
    let failing = Scripted::new(|delivery| match delivery.attempt {
        1 | 2 => Outcome::Retry { reason: "busy".to_owned() },
        _ => Outcome::Done,
    });
    let other = Scripted::done();
    let consumers = [
        Running::consumer(&bus, ACCEPTED, failing.clone()),
        Running::consumer(&bus, Subscription { queue: "auditor.accepted", ..ACCEPTED }, other.clone()),
    ];
    connected(&bus).await?;
    let start = Instant::now();
    publish(&bus, &accepted()).await?;
    failing.wait_for(3).await?;
    assert!(start.elapsed() >= Duration::from_millis(400), "delays of 100 and 300 ms: {:?}", start.elapsed());
    let attempts: Vec<u32> = failing.deliveries().iter().map(|delivery| delivery.attempt).collect();
    assert_eq!(attempts, [1, 2, 3]);
    assert_eq!(failing.ids().len(), 1);
    for consumer in consumers {
        consumer.stop().await?;
    }
    assert_eq!(other.deliveries().len(), 1);
    Ok(())
}

#[tokio::test]
async fn consumers_share_a_queue() -> Result<()> {
    let bus = rabbit_bus()?;
    let narrow = Subscription { max_batch: 2, max_in_flight: 2, ..ACCEPTED };
    let (first, first_consumer) = Running::done(&bus, narrow);
    let (second, second_consumer) = Running::done(&bus, narrow);
    connected(&bus).await?;
    let events: Vec<OutgoingEvent> = (0..200).map(|_| accepted()).collect();
    assert!(publish_all(&bus, &events).await.iter().all(Result::is_ok));
    let total = || first.deliveries().len() + second.deliveries().len();
    eventually("all events to be handled", || async { Ok(total() >= 200) }).await?;
    first_consumer.stop().await?;
    second_consumer.stop().await?;
    assert_eq!(total(), 200);
    assert!(first.ids().is_disjoint(&second.ids()));
    assert!(!first.ids().is_empty() && !second.ids().is_empty(), "one of them got everything");
    Ok(())
}

#[tokio::test]
async fn batches_respect_the_limits_of_the_subscription() -> Result<()> {
    let bus = rabbit_bus()?;
    let handler = Scripted::gated(|_| Outcome::Done);
    let subscription = Subscription { max_batch: 4, max_in_flight: 10, ..ACCEPTED };
    let consumer = Running::consumer(&bus, subscription, handler.clone());
    connected(&bus).await?;
    let events: Vec<OutgoingEvent> = (0..50).map(|_| accepted()).collect();
    assert!(bus.publish(&events).await.iter().all(Result::is_ok));
    eventually("as much work as allowed", || async { Ok(handler.begun() == 10) }).await?;
    handler.open();
    handler.wait_for(50).await?;
    consumer.stop().await?;
    let sizes: Vec<usize> = handler.batches().iter().map(Vec::len).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 50);
    assert!(sizes.iter().all(|size| *size <= 4) && sizes.iter().any(|size| *size > 1), "{sizes:?}");
    Ok(())
}

#[tokio::test]
async fn ack_of_one_batch_never_covers_another_in_flight() -> Result<()> {
    let bus = rabbit_bus()?;
    let (slow, quick) = (accepted(), accepted());
    let slow_id = slow.id();
    // The slow one is in the first batch; the quick one is done while it is still being handled.
    let handler = support::HangsOnOne::new(slow_id);
    let subscription = Subscription { max_batch: 1, max_in_flight: 2, ..ACCEPTED };
    let consumer = Running::consumer(&bus, subscription, handler.clone());
    connected(&bus).await?;
    publish(&bus, &slow).await?;
    publish(&bus, &quick).await?;
    eventually("the quick one to be done", || async { Ok(handler.done().contains(&quick.id())) }).await?;
    consumer.abort().await;

    let (successor, consumer) = Running::done(&bus, ACCEPTED);
    eventually("the slow one to be redelivered", || async { Ok(successor.ids().contains(&slow_id)) }).await?;
    consumer.stop().await
}

#[tokio::test]
async fn stopping_consumer_finishes_and_acks_its_deliveries() -> Result<()> {
    let bus = rabbit_bus()?;
    let handler = Scripted::gated(|_| Outcome::Done);
    let subscription = Subscription { max_batch: 1, max_in_flight: 3, ..ACCEPTED };
    let mut consumer = Running::consumer(&bus, subscription, handler.clone());
    connected(&bus).await?;
    let events: Vec<OutgoingEvent> = (0..9).map(|_| accepted()).collect();
    for event in &events {
        publish(&bus, event).await?;
    }
    eventually("the handler to begin", || async { Ok(handler.begun() == 3) }).await?;
    consumer.begin_stop();
    assert!(consumer.is_running(), "it left its work behind");
    handler.open();
    consumer.stop().await?;
    assert_eq!(handler.deliveries().len(), 3);

    let (successor, consumer) = Running::done(&bus, ACCEPTED);
    successor.wait_for(6).await?;
    consumer.stop().await?;
    let all: HashSet<_> = events.iter().map(OutgoingEvent::id).collect();
    assert!(handler.ids().is_disjoint(&successor.ids()), "a finished delivery was redelivered");
    assert_eq!(handler.ids().union(&successor.ids()).copied().collect::<HashSet<_>>(), all);
    Ok(())
}
