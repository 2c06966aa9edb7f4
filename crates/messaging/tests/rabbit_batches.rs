//! Several events in one message. Producers and handlers do not notice it.

mod support;

use std::collections::HashSet;

use anyhow::Result;
use assay_contracts::event::{ConversationAccepted, Event as _};
use assay_contracts::ids::EventId;
use assay_messaging::{Bus, BusSettings, Delivery, Outcome, OutgoingEvent, PublishError, Subscription};

use support::{
    ACCEPTED, AGENTS, HangsOnOne, Running, Scripted, accepted, agent_created, agent_named, connected,
    declare, eventually, rabbit, rabbit_with,
};

const DEAD: &str = "scorer.conversation-accepted.dead";
const SINGLE: &str = "application/cloudevents+json";
const BATCH: &str = "application/cloudevents-batch+json";

#[tokio::test]
async fn events_of_one_publish_share_messages_and_arrive_once() -> Result<()> {
    let (bus, wire, _) = rabbit_with(ACCEPTED).await?;
    let events = many(130);
    assert!(bus.publish(&events).await.iter().all(Result::is_ok));
    assert_eq!(wire.waiting(ACCEPTED.queue).await?, 3, "64, 64 and 2 events");

    let (handler, consumer) = Running::done(&bus, ACCEPTED);
    handler.wait_for_all(&events).await?;
    consumer.stop().await?;
    assert_eq!(handler.deliveries().len(), 130);
    let in_order: Vec<EventId> = handler.deliveries().iter().map(|delivery| delivery.id).collect();
    assert_eq!(in_order, events.iter().map(OutgoingEvent::id).collect::<Vec<_>>());
    assert_eq!(wire.waiting(ACCEPTED.queue).await?, 0);
    Ok(())
}

#[tokio::test]
async fn batch_is_an_array_of_envelopes() -> Result<()> {
    let (bus, wire, _) = rabbit_with(ACCEPTED).await?;
    let events = many(3);
    assert!(bus.publish(&events).await.iter().all(Result::is_ok));
    let message = wire.take(ACCEPTED.queue).await?;
    assert_eq!(message.content_type.as_deref(), Some(BATCH));
    assert_eq!(message.topic.as_deref(), Some(ConversationAccepted::TOPIC.name));
    let payloads: Vec<&str> = events.iter().map(OutgoingEvent::payload).collect();
    assert_eq!(String::from_utf8(message.body)?, format!("[{}]", payloads.join(",")));
    Ok(())
}

#[tokio::test]
async fn single_event_is_published_without_a_batch() -> Result<()> {
    let (bus, wire, settings) = rabbit_with(ACCEPTED).await?;
    let one_by_one = Bus::open(&BusSettings { events_per_message: 1, ..settings })?;
    let events = many(3);
    assert_eq!(bus.publish(&events[..1]).await, [Ok(())]);
    assert_eq!(one_by_one.publish(&events[1..]).await, [Ok(()), Ok(())]);
    for event in &events {
        let message = wire.take(ACCEPTED.queue).await?;
        assert_eq!(message.content_type.as_deref(), Some(SINGLE));
        assert_eq!(message.message_id, Some(event.id().to_string()));
        assert_eq!(message.topic.as_deref(), Some(ConversationAccepted::TOPIC.name));
        assert_eq!(String::from_utf8(message.body)?, event.payload());
    }
    Ok(())
}

#[tokio::test]
async fn batch_is_at_most_256_kibibytes() -> Result<()> {
    let (bus, wire, _) = rabbit_with(AGENTS).await?;
    let small = || agent_named("x".repeat(100_000));
    let events = [small(), small(), small(), agent_named("x".repeat(400_000)), small()];
    assert!(bus.publish(&events).await.iter().all(Result::is_ok));
    assert_eq!(wire.waiting(AGENTS.queue).await?, 4, "2, 1, 1 and 1 events");
    let (handler, consumer) = Running::done(&bus, AGENTS);
    handler.wait_for_all(&events).await?;
    consumer.stop().await?;
    assert_eq!(handler.deliveries().len(), 5);
    Ok(())
}

#[tokio::test]
async fn handler_calls_are_bounded_in_bytes() -> Result<()> {
    const EVENTS: usize = 20;
    let (_, _, settings) = rabbit().await?;
    let bus = Bus::open(&BusSettings { events_per_message: 1, ..settings })?;
    declare(&bus, AGENTS).await?;
    let events: Vec<_> = (0..EVENTS).map(|_| agent_named("x".repeat(1_500 * 1024))).collect();
    assert!(bus.publish(&events).await.iter().all(Result::is_ok));
    let handler = Scripted::gated(|_| Outcome::Done);
    let consumer = Running::consumer(&bus, AGENTS, handler.clone());
    // Eleven events of 1.5 MiB are more than 16 MiB. A call has at most two, so the last one may make it twelve.
    eventually("16 MiB in flight", || async { Ok(handler.begun() >= 11) }).await?;
    // The rest has been delivered or arrives in this time; no call begins with it.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let in_flight = handler.begun();
    assert!(in_flight <= 12, "{in_flight} events of 1.5 MiB in flight");
    handler.open();
    handler.wait_for_all(&events).await?;
    consumer.stop().await?;
    let largest = handler.batches().iter().map(Vec::len).max();
    assert!(largest <= Some(2), "{largest:?} events of 1.5 MiB in one call");
    Ok(())
}

#[tokio::test]
async fn topics_have_separate_messages_and_results_keep_order() -> Result<()> {
    let (bus, wire, _) = rabbit_with(AGENTS).await?;
    let unroutable = || Err(PublishError::Unroutable { topic: ConversationAccepted::TOPIC.name.to_owned() });
    let events = [accepted(), agent_created(), accepted(), agent_created(), accepted()];
    assert_eq!(bus.publish(&events).await, [unroutable(), Ok(()), unroutable(), Ok(()), unroutable()]);
    assert_eq!(wire.waiting(AGENTS.queue).await?, 1);
    Ok(())
}

#[tokio::test]
async fn events_of_a_batch_have_separate_outcomes() -> Result<()> {
    let (bus, wire, _) = rabbit_with(ACCEPTED).await?;
    let events = many(9);
    let position = positions(&events);
    let handler = Scripted::new(move |delivery| match (position(delivery.id) % 3, delivery.attempt) {
        (1, 1) => Outcome::Retry { reason: "busy".to_owned() },
        (2, _) => Outcome::Reject { reason: "poisoned".to_owned() },
        _ => Outcome::Done,
    });
    assert!(bus.publish(&events).await.iter().all(Result::is_ok));
    // The outcomes of the one message come from several handler calls.
    let consumer = Running::consumer(&bus, Subscription { max_batch: 4, ..ACCEPTED }, handler.clone());
    handler.wait_for(12).await?;
    consumer.stop().await?;
    let position = positions(&events);
    let mut attempts: Vec<(usize, u32)> =
        handler.deliveries().iter().map(|delivery| (position(delivery.id), delivery.attempt)).collect();
    attempts.sort_unstable();
    let expected =
        [(0, 1), (1, 1), (1, 2), (2, 1), (3, 1), (4, 1), (4, 2), (5, 1), (6, 1), (7, 1), (7, 2), (8, 1)];
    assert_eq!(attempts, expected);
    assert_eq!(wire.waiting(ACCEPTED.queue).await?, 0);
    let mut rejected: HashSet<&str> = [2, 5, 8].map(|position| events[position].payload()).into();
    assert_eq!(wire.waiting(DEAD).await?, 3);
    for _ in 0..3 {
        let dead = wire.take(DEAD).await?;
        assert_eq!(dead.content_type.as_deref(), Some(SINGLE));
        assert!(rejected.remove(std::str::from_utf8(&dead.body)?), "{dead:?}");
    }
    Ok(())
}

#[tokio::test]
async fn batch_is_redelivered_when_its_consumer_crashes() -> Result<()> {
    let (bus, wire, _) = rabbit_with(ACCEPTED).await?;
    let events = many(8);
    let handler = HangsOnOne::new(events[3].id());
    assert!(bus.publish(&events).await.iter().all(Result::is_ok));
    let one_by_one = Subscription { max_batch: 1, max_in_flight: 4, ..ACCEPTED };
    let consumer = Running::consumer(&bus, one_by_one, handler.clone());
    eventually("all but one to be done", || async { Ok(handler.done().len() == 7) }).await?;
    consumer.abort().await;

    eventually("the message to be back", || async { Ok(wire.waiting(ACCEPTED.queue).await? == 1) }).await?;
    let (successor, consumer) = Running::done(&bus, ACCEPTED);
    successor.wait_for_all(&events).await?;
    consumer.stop().await?;
    assert!(successor.deliveries().iter().all(|delivery| delivery.attempt == 1), "a crash is no attempt");
    assert_eq!(wire.waiting(ACCEPTED.queue).await?, 0);
    Ok(())
}

#[tokio::test]
async fn stopping_consumer_finishes_events_and_requeues_their_batch() -> Result<()> {
    let (bus, wire, _) = rabbit_with(ACCEPTED).await?;
    let events = many(9);
    let handler = Scripted::gated(|_| Outcome::Done);
    assert!(bus.publish(&events).await.iter().all(Result::is_ok));
    let narrow = Subscription { max_batch: 1, max_in_flight: 3, ..ACCEPTED };
    let consumer = Running::consumer(&bus, narrow, handler.clone());
    eventually("the handler to begin", || async { Ok(handler.begun() == 3) }).await?;
    consumer.begin_stop();
    handler.open();
    consumer.stop().await?;
    assert_eq!(handler.deliveries().len(), 3);

    eventually("the message to be back", || async { Ok(wire.waiting(ACCEPTED.queue).await? == 1) }).await?;
    let (successor, consumer) = Running::done(&bus, ACCEPTED);
    successor.wait_for_all(&events).await?;
    consumer.stop().await
}

#[tokio::test]
async fn malformed_element_becomes_a_dead_letter_alone() -> Result<()> {
    let (bus, wire, _) = rabbit_with(ACCEPTED).await?;
    let events = many(2);
    let body = format!("[{}, {{\"no\": \"event\"}}, {}]", events[0].payload(), events[1].payload());
    wire.put(ACCEPTED.queue, BATCH, body.as_bytes()).await?;
    let (handler, consumer) = Running::done(&bus, ACCEPTED);
    handler.wait_for_all(&events).await?;
    consumer.stop().await?;
    assert_eq!(handler.deliveries().len(), 2);
    assert_eq!(wire.waiting(ACCEPTED.queue).await?, 0);
    let dead = wire.take(DEAD).await?;
    assert_eq!(dead.body, b"{\"no\": \"event\"}");
    Ok(())
}

#[tokio::test]
async fn malformed_batch_becomes_one_dead_letter() -> Result<()> {
    let (bus, wire, _) = rabbit_with(ACCEPTED).await?;
    let event = accepted();
    let truncated = format!("[{}, ", event.payload());
    for body in [event.payload(), "[]", truncated.as_str(), "", "null"] {
        wire.put(ACCEPTED.queue, BATCH, body.as_bytes()).await?;
        let (handler, consumer) = Running::done(&bus, ACCEPTED);
        let dead = || async { Ok(wire.waiting(DEAD).await? == 1) };
        eventually("a dead letter", dead).await?;
        consumer.stop().await?;
        assert_eq!(String::from_utf8(wire.take(DEAD).await?.body)?, body);
        assert!(handler.deliveries().is_empty(), "{body}");
        assert_eq!(wire.waiting(ACCEPTED.queue).await?, 0, "{body}");
    }
    Ok(())
}

#[tokio::test]
async fn single_events_fill_max_in_flight() -> Result<()> {
    let (bus, _, settings) = rabbit().await?;
    let handler = Scripted::gated(|_| Outcome::Done);
    let subscription = Subscription { max_batch: 7, max_in_flight: 40, ..ACCEPTED };
    let consumer = Running::consumer(&bus, subscription, handler.clone());
    connected(&bus).await?;
    let events = many(100);
    let one_by_one = Bus::open(&BusSettings { events_per_message: 1, ..settings })?;
    assert!(one_by_one.publish(&events).await.iter().all(Result::is_ok));
    eventually("as much work as allowed", || async { Ok(handler.begun() == 40) }).await?;
    handler.open();
    handler.wait_for_all(&events).await?;
    consumer.stop().await?;
    assert_eq!(handler.deliveries().len(), 100, "a delivery was lost or redelivered");
    Ok(())
}

/// A requeue would count as an end of the process while the events were handled: after two of them they are handled alone.
#[tokio::test]
async fn oversized_prefetch_is_handled_without_a_requeue() -> Result<()> {
    let (bus, wire, settings) = rabbit_with(ACCEPTED).await?;
    let for_singles = Bus::open(&BusSettings { events_per_message: 1, ..settings })?;
    let handler = Scripted::gated(|_| Outcome::Done);
    let narrow = Subscription { max_batch: 4, max_in_flight: 8, ..ACCEPTED };
    let consumer = Running::consumer(&for_singles, narrow, handler.clone());
    connected(&for_singles).await?;
    let events = many(40 * 64);
    assert!(bus.publish(&events).await.iter().all(Result::is_ok));
    // The prefetch begins with eight messages, and shrinks to two at the first of them.
    eventually("the handler to be busy", || async { Ok(handler.begun() == 8) }).await?;
    handler.open();
    handler.wait_for_all(&events).await?;
    consumer.stop().await?;
    let deliveries = handler.deliveries();
    assert_eq!(deliveries.len(), events.len(), "an event was lost or redelivered");
    // The field is private.
    let is_counted = |delivery: &&Delivery| !format!("{delivery:?}").contains("times_cut_short: 0");
    assert_eq!(deliveries.iter().filter(is_counted).count(), 0, "events with a counted requeue");
    assert_eq!(wire.waiting(ACCEPTED.queue).await?, 0);
    Ok(())
}

fn many(events: usize) -> Vec<OutgoingEvent> {
    (0..events).map(|_| accepted()).collect()
}

/// The position of an event in `events`.
fn positions(events: &[OutgoingEvent]) -> impl Fn(EventId) -> usize + Send + Sync + use<> {
    let ids: Vec<EventId> = events.iter().map(OutgoingEvent::id).collect();
    move |id| ids.iter().position(|other| *other == id).unwrap_or(usize::MAX)
}
