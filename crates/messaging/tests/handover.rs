//! Events that are handed to the relay in memory, instead of being looked for in the outbox (ADR 13).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod support;
#[macro_use]
#[path = "support/relaying.rs"]
mod relaying;
#[path = "../src/test_databases.rs"]
mod test_databases;

use anyhow::Result;
use assay_messaging::outbox::{Handover, Outbox};
use assay_messaging::{Bus, OutgoingEvent};
use assay_platform::db::Database;

use relaying::{TABLES, enqueue, enqueue_for, run_stopped_relay, start_relay};
use support::{
    ACCEPTED, Running, Scripted, accepted, behind_a_proxy, connected, eventually, local_bus, publish,
    rabbit_bus,
};

on_every_stack!(
    events_that_are_handed_over_are_published_without_being_looked_for,
    events_that_are_written_for_a_relay_and_not_handed_over_rest_until_their_claim_ends,
    without_a_relay_events_are_not_claimed_for_one,
);

async fn events_that_are_handed_over_are_published_without_being_looked_for(
    database: Database,
    bus: Bus,
) -> Result<()> {
    let handler = Scripted::done();
    let consumer = Running::consumer(&bus, ACCEPTED, handler.clone());
    // While its queue is not there events are returned, and of those on the way meanwhile some are published once more.
    connected(&bus).await?;
    let outbox = Outbox::new(database.clone());
    let relay = start_relay(&outbox, &bus);
    let handover = open_handover(&outbox).await?;
    let events: Vec<OutgoingEvent> = (0..600).map(|_| accepted()).collect();
    enqueue_for(&database, &events, handover).await?;
    outbox.hand_over(handover, events.clone());
    handler.wait_for_all(&events).await?;
    eventually("an empty outbox", || async { Ok(outbox.status().await?.pending == 0) }).await?;
    relay.stop().await?;
    consumer.stop().await?;
    assert_eq!(handler.deliveries().len(), events.len(), "an event was published twice");
    Ok(())
}

async fn events_that_are_written_for_a_relay_and_not_handed_over_rest_until_their_claim_ends(
    database: Database,
    bus: Bus,
) -> Result<()> {
    let handler = Scripted::done();
    let consumer = Running::consumer(&bus, ACCEPTED, handler.clone());
    let outbox = Outbox::new(database.clone());
    let relay = start_relay(&outbox, &bus);
    let handover = open_handover(&outbox).await?;
    let (forgotten, other) = (accepted(), accepted());
    enqueue_for(&database, std::slice::from_ref(&forgotten), handover).await?;
    enqueue(&database, std::slice::from_ref(&other)).await?;
    outbox.wake();
    handler.wait_for_all(std::slice::from_ref(&other)).await?;
    assert!(!handler.ids().contains(&forgotten.id()), "the claim was not respected");
    // As the next start of a process does that knows that no relay lives.
    outbox.end_claims().await?;
    handler.wait_for_all(&[forgotten, other]).await?;
    relay.stop().await?;
    consumer.stop().await
}

async fn without_a_relay_events_are_not_claimed_for_one(database: Database, bus: Bus) -> Result<()> {
    let outbox = Outbox::new(database.clone());
    assert_eq!(outbox.handover(), Handover::NONE);
    let relay = start_relay(&outbox, &bus);
    open_handover(&outbox).await?;
    relay.stop().await?;
    assert_eq!(outbox.handover(), Handover::NONE);
    Ok(())
}

#[tokio::test]
async fn events_that_were_handed_over_in_an_outage_are_not_held_by_a_claim() -> Result<()> {
    let fresh = test_databases::sqlite(&TABLES).await?;
    let outbox = Outbox::new(fresh.database.clone());
    let (proxy, bus) = behind_a_proxy().await?;
    let handler = Scripted::done();
    let consumer = Running::consumer(&bus, ACCEPTED, handler.clone());
    publish(&bus, &accepted()).await?;
    let relay = start_relay(&outbox, &bus);
    let handover = open_handover(&outbox).await?;
    proxy.cut();
    eventually("the outage to be noticed", || async { Ok(bus.ping().await.is_err()) }).await?;
    let events: Vec<OutgoingEvent> = (0..300).map(|_| accepted()).collect();
    enqueue_for(&fresh.database, &events, handover).await?;
    outbox.hand_over(handover, events.clone());
    relay.stop().await?;
    // Another relay finds them at once.
    proxy.heal();
    eventually("the broker to be back", || async { Ok(bus.ping().await.is_ok()) }).await?;
    run_stopped_relay(&Outbox::new(fresh.database.clone()), &bus).await?;
    handler.wait_for_all(&events).await?;
    consumer.stop().await
}

/// Once the relay takes events.
async fn open_handover(outbox: &Outbox) -> Result<Handover> {
    eventually("the relay to take events", || async { Ok(outbox.handover() != Handover::NONE) }).await?;
    Ok(outbox.handover())
}
