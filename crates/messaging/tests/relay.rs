//! The relay, from the producer's transaction to the consumer's, on every combination of a database and a bus.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

#[macro_use]
mod support;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use assay_contracts::ids::EventId;
use assay_messaging::inbox::Connection as _;
use assay_messaging::outbox::Outbox;
use assay_messaging::{Bus, Delivery, Handler, Outcome, OutgoingEvent};
use assay_platform::db::{Database, DatabaseError};
use assay_platform::runtime::now;
use assay_testkit::write_on;
use async_trait::async_trait;

use support::relaying::{enqueue, run_stopped_relay, sqlite_database, start_relay};
use support::{
    ACCEPTED, Running, Scripted, accepted, behind_a_proxy, eventually, local_bus, publish, publish_all,
    rabbit_bus,
};

on_every_stack!(
    committed_events_are_delivered_and_leave_the_outbox,
    redelivered_event_is_processed_once,
    event_waits_for_its_consumer_to_start,
    failed_attempt_is_retried,
    relays_share_an_outbox,
    stopped_relay_flushes_due_events,
);

async fn committed_events_are_delivered_and_leave_the_outbox(database: Database, bus: Bus) -> Result<()> {
    let (handler, consumer) = Running::done(&bus, ACCEPTED);
    let outbox = Outbox::new(database.clone());
    let relay = start_relay(&outbox, &bus);
    let events: Vec<OutgoingEvent> = (0..600).map(|_| accepted()).collect();
    enqueue(&database, &events).await?;
    outbox.wake();
    handler.wait_for_all(&events).await?;
    eventually("an empty outbox", || async { Ok(outbox.status().await?.pending == 0) }).await?;
    relay.stop().await?;
    consumer.stop().await?;
    assert_eq!(handler.ids().len(), events.len(), "unexpected events were delivered");
    assert_eq!(outbox.status().await?.dead, 0);
    Ok(())
}

async fn redelivered_event_is_processed_once(database: Database, bus: Bus) -> Result<()> {
    let handler = Arc::new(OncePerEvent::new(database.clone()));
    let consumer = Running::consumer(&bus, ACCEPTED, handler.clone());
    let events: Vec<OutgoingEvent> = (0..20).map(|_| accepted()).collect();
    for _ in 0..3 {
        assert!(publish_all(&bus, &events).await.iter().all(Result::is_ok));
    }
    eventually("all deliveries", || async { Ok(handler.deliveries() >= 60) }).await?;
    consumer.stop().await?;
    let processed = handler.processed();
    assert_eq!(processed.len(), events.len(), "an event was processed twice or never");
    assert_eq!(processed.into_iter().collect::<HashSet<_>>(), events.iter().map(OutgoingEvent::id).collect());
    Ok(())
}

async fn event_waits_for_its_consumer_to_start(database: Database, bus: Bus) -> Result<()> {
    let outbox = Outbox::new(database.clone());
    let relay = start_relay(&outbox, &bus);
    let event = accepted();
    enqueue(&database, std::slice::from_ref(&event)).await?;
    outbox.wake();
    let has_failed = || async { Ok(outbox.status().await?.last_error.is_some()) };
    eventually("a failed attempt to publish", has_failed).await?;
    let (handler, consumer) = Running::done(&bus, ACCEPTED);
    handler.wait_for(1).await?;
    eventually("an empty outbox", || async { Ok(outbox.status().await?.pending == 0) }).await?;
    relay.stop().await?;
    consumer.stop().await?;
    assert_eq!(handler.ids(), [event.id()].into());
    Ok(())
}

async fn failed_attempt_is_retried(database: Database, bus: Bus) -> Result<()> {
    let handler = Scripted::new(|delivery| match delivery.attempt {
        1 => Outcome::Retry { reason: "busy".to_owned() },
        _ => Outcome::Done,
    });
    let consumer = Running::consumer(&bus, ACCEPTED, handler.clone());
    let outbox = Outbox::new(database.clone());
    let relay = start_relay(&outbox, &bus);
    enqueue(&database, &[accepted()]).await?;
    outbox.wake();
    handler.wait_for(2).await?;
    eventually("an empty outbox", || async { Ok(outbox.status().await?.pending == 0) }).await?;
    relay.stop().await?;
    consumer.stop().await?;
    let attempts: Vec<u32> = handler.deliveries().iter().map(|delivery| delivery.attempt).collect();
    assert_eq!(attempts, [1, 2]);
    Ok(())
}

async fn relays_share_an_outbox(database: Database, bus: Bus) -> Result<()> {
    let (handler, consumer) = Running::done(&bus, ACCEPTED);
    // Waits for the queue: while it is being declared, events of one batch may be published twice.
    assert_eq!(publish_all(&bus, &[accepted()]).await, [Ok(())]);
    let events: Vec<OutgoingEvent> = (0..1_000).map(|_| accepted()).collect();
    enqueue(&database, &events).await?;
    let outboxes: Vec<Outbox> = (0..3).map(|_| Outbox::new(database.clone())).collect();
    let relays: Vec<Running> = outboxes.iter().map(|outbox| start_relay(outbox, &bus)).collect();
    eventually("an empty outbox", || async { Ok(outboxes[0].status().await?.pending == 0) }).await?;
    handler.wait_for(events.len() + 1).await?;
    for relay in relays {
        relay.stop().await?;
    }
    consumer.stop().await?;
    assert_eq!(handler.deliveries().len(), events.len() + 1, "an event was published twice");
    let handled = handler.ids();
    assert!(events.iter().all(|event| handled.contains(&event.id())), "an event was lost");
    Ok(())
}

async fn stopped_relay_flushes_due_events(database: Database, bus: Bus) -> Result<()> {
    let (handler, consumer) = Running::done(&bus, ACCEPTED);
    assert_eq!(publish_all(&bus, &[accepted()]).await, [Ok(())]);
    let events: Vec<OutgoingEvent> = (0..700).map(|_| accepted()).collect();
    enqueue(&database, &events).await?;
    let outbox = Outbox::new(database);
    run_stopped_relay(&outbox, &bus).await;
    assert_eq!(outbox.status().await?.pending, 0);
    handler.wait_for_all(&events).await?;
    consumer.stop().await
}

#[tokio::test]
async fn event_rejected_on_the_local_bus_is_dead_until_retried() -> Result<()> {
    let (_kept, database) = sqlite_database().await?;
    let bus = local_bus();
    let outbox = Outbox::new(database.clone());
    let relay = start_relay(&outbox, &bus);
    let rejecting = Scripted::new(|_| Outcome::Reject { reason: "unknown kind of author".to_owned() });
    let consumer = Running::consumer(&bus, ACCEPTED, rejecting);
    let event = accepted();
    enqueue(&database, std::slice::from_ref(&event)).await?;
    outbox.wake();
    eventually("a dead event", || async { Ok(outbox.status().await?.dead == 1) }).await?;
    consumer.stop().await?;
    let dead = outbox.dead_events(10).await?;
    assert_eq!(dead[0].id, event.id());
    assert_eq!(dead[0].last_error, "consumer rejected the event: unknown kind of author");

    let (handler, consumer) = Running::done(&bus, ACCEPTED);
    assert!(outbox.retry_dead(event.id()).await?);
    handler.wait_for(1).await?;
    relay.stop().await?;
    consumer.stop().await
}

#[tokio::test]
async fn stopped_relay_leaves_a_long_backlog() -> Result<()> {
    let (_kept, database) = sqlite_database().await?;
    let (outbox, bus) = (Outbox::new(database.clone()), local_bus());
    let (handler, consumer) = Running::done(&bus, ACCEPTED);
    assert_eq!(publish_all(&bus, &[accepted()]).await, [Ok(())]);
    let events: Vec<OutgoingEvent> = (0..3_000).map(|_| accepted()).collect();
    enqueue(&database, &events).await?;
    run_stopped_relay(&outbox, &bus).await;
    let pending = outbox.status().await?.pending;
    assert!((1..3_000).contains(&pending), "{pending} events are left");
    assert_eq!(handler.deliveries().len() as u64, 3_001 - pending, "an event was lost");
    consumer.stop().await
}

#[tokio::test]
async fn relay_stopped_after_its_consumers_releases_events() -> Result<()> {
    let (_kept, database) = sqlite_database().await?;
    let (outbox, bus) = (Outbox::new(database.clone()), local_bus());
    let event = accepted();
    enqueue(&database, std::slice::from_ref(&event)).await?;
    run_stopped_relay(&outbox, &bus).await;
    let status = outbox.status().await?;
    assert_eq!((status.pending, status.last_error), (1, None), "the event was postponed");

    // Nor is it blocked by a lease: the next relay claims it at once.
    let (handler, consumer) = Running::done(&bus, ACCEPTED);
    assert_eq!(publish_all(&bus, &[accepted()]).await, [Ok(())]);
    run_stopped_relay(&outbox, &bus).await;
    assert!(handler.ids().contains(&event.id()));
    consumer.stop().await
}

#[tokio::test]
async fn stopped_relay_does_not_wait_for_a_stuck_consumer() -> Result<()> {
    let (_kept, database) = sqlite_database().await?;
    let (outbox, bus) = (Outbox::new(database.clone()), local_bus());
    let handler = Scripted::gated(|_| Outcome::Done);
    let consumer = Running::consumer(&bus, ACCEPTED, handler.clone());
    let relay = start_relay(&outbox, &bus);
    enqueue(&database, &[accepted()]).await?;
    outbox.wake();
    eventually("the handler to begin", || async { Ok(handler.begun() == 1) }).await?;
    relay.stop().await?;
    assert_eq!(outbox.status().await?.pending, 1, "an unhandled event was deleted");
    consumer.abort().await;
    Ok(())
}

#[tokio::test]
async fn events_wait_in_the_outbox_during_an_outage() -> Result<()> {
    let (_kept, database) = sqlite_database().await?;
    let outbox = Outbox::new(database.clone());
    let (proxy, bus) = behind_a_proxy().await?;
    let (handler, consumer) = Running::done(&bus, ACCEPTED);
    publish(&bus, &accepted()).await?;
    proxy.cut();
    eventually("the outage to be noticed", || async { Ok(bus.ping().await.is_err()) }).await?;

    let relay = start_relay(&outbox, &bus);
    let events: Vec<OutgoingEvent> = (0..300).map(|_| accepted()).collect();
    enqueue(&database, &events).await?;
    outbox.wake();
    // The flush of a stopping relay has failed as well.
    relay.stop().await?;
    let status = outbox.status().await?;
    assert_eq!((status.pending, status.dead), (300, 0));

    let relay = start_relay(&outbox, &bus);
    proxy.heal();
    handler.wait_for_all(&events).await?;
    eventually("an empty outbox", || async { Ok(outbox.status().await?.pending == 0) }).await?;
    relay.stop().await?;
    consumer.stop().await
}

/// A consumer that processes only events that are new to its inbox.
struct OncePerEvent {
    database: Database,
    deliveries: Mutex<usize>,
    processed: Mutex<Vec<EventId>>,
}

impl OncePerEvent {
    fn new(database: Database) -> Self {
        Self { database, deliveries: Mutex::default(), processed: Mutex::default() }
    }

    fn deliveries(&self) -> usize {
        *self.deliveries.lock().unwrap()
    }

    fn processed(&self) -> Vec<EventId> {
        self.processed.lock().unwrap().clone()
    }

    async fn record(&self, ids: Vec<EventId>) -> Result<HashSet<EventId>, DatabaseError> {
        write_on!(&self.database, |connection| connection.record_events("scorer", &ids, now()))
    }
}

#[async_trait]
impl Handler for OncePerEvent {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        let ids = deliveries.iter().map(|delivery| delivery.id).collect();
        let outcome = match self.record(ids).await {
            Ok(new) => {
                self.processed.lock().unwrap().extend(new);
                Outcome::Done
            }
            Err(error) => Outcome::Retry { reason: error.to_string() },
        };
        *self.deliveries.lock().unwrap() += deliveries.len();
        vec![outcome; deliveries.len()]
    }
}
