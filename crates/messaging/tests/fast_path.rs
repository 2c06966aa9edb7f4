//! The outbox fast path: events passed to the relay in memory (ADR 13).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

#[macro_use]
mod support;

use std::time::Duration;

use anyhow::Result;
use assay_messaging::outbox::{FastPathClaim, Outbox};
use assay_messaging::{Bus, OutgoingEvent};
use assay_platform::db::Database;
use assay_testkit::execute_on;
use tokio::time::sleep;

use support::relaying::{enqueue, enqueue_with_claim, run_stopped_relay, sqlite_database, start_relay};
use support::{
    ACCEPTED, Running, accepted, behind_a_proxy, connected, eventually, local_bus, publish, rabbit_bus,
};

on_every_stack!(
    dispatched_events_are_published_once,
    claimed_events_without_dispatch_wait_for_their_lease,
    fast_path_is_closed_without_a_relay,
    isolated_event_that_is_not_due_leaves_the_fast_path_open,
);

async fn dispatched_events_are_published_once(database: Database, bus: Bus) -> Result<()> {
    let (handler, consumer) = Running::done(&bus, ACCEPTED);
    // Without the consumer's queue, events would be returned as unroutable, and some of their batch published again.
    connected(&bus).await?;
    let outbox = Outbox::new(database.clone());
    let relay = start_relay(&outbox, &bus);
    let claim = open_fast_path(&outbox).await?;
    let events: Vec<OutgoingEvent> = (0..600).map(|_| accepted()).collect();
    enqueue_with_claim(&database, &events, claim).await?;
    outbox.dispatch(claim, events.clone());
    handler.wait_for_all(&events).await?;
    eventually("an empty outbox", || async { Ok(outbox.status().await?.pending == 0) }).await?;
    relay.stop().await?;
    consumer.stop().await?;
    assert_eq!(handler.deliveries().len(), events.len(), "an event was published twice");
    Ok(())
}

async fn claimed_events_without_dispatch_wait_for_their_lease(database: Database, bus: Bus) -> Result<()> {
    let (handler, consumer) = Running::done(&bus, ACCEPTED);
    let outbox = Outbox::new(database.clone());
    let relay = start_relay(&outbox, &bus);
    let claim = open_fast_path(&outbox).await?;
    let (forgotten, other) = (accepted(), accepted());
    enqueue_with_claim(&database, std::slice::from_ref(&forgotten), claim).await?;
    enqueue(&database, std::slice::from_ref(&other)).await?;
    outbox.wake();
    handler.wait_for_all(std::slice::from_ref(&other)).await?;
    assert!(!handler.ids().contains(&forgotten.id()), "the claim was not respected");
    // As a process does at its start when it knows that no relay is running.
    outbox.release_all_claims().await?;
    handler.wait_for_all(&[forgotten, other]).await?;
    relay.stop().await?;
    consumer.stop().await
}

async fn fast_path_is_closed_without_a_relay(database: Database, bus: Bus) -> Result<()> {
    let outbox = Outbox::new(database.clone());
    assert_eq!(outbox.claim_fast_path(), FastPathClaim::NONE);
    let relay = start_relay(&outbox, &bus);
    open_fast_path(&outbox).await?;
    relay.stop().await?;
    assert_eq!(outbox.claim_fast_path(), FastPathClaim::NONE);
    Ok(())
}

/// The isolated event ended processes twice, and its next attempt is a minute ahead.
async fn isolated_event_that_is_not_due_leaves_the_fast_path_open(
    database: Database,
    bus: Bus,
) -> Result<()> {
    let (handler, consumer) = Running::done(&bus, ACCEPTED);
    connected(&bus).await?;
    let (isolated, other) = (accepted(), accepted());
    enqueue(&database, std::slice::from_ref(&isolated)).await?;
    let due = assay_platform::runtime::now().plus_millis(60_000).as_millis();
    execute_on(&database, format!("UPDATE outbox SET cut_short = 2, next_attempt_at = {due}")).await?;
    let outbox = Outbox::new(database.clone());
    let relay = start_relay(&outbox, &bus);
    // By then the relay has looked for isolated events, which it does from three seconds after its start on.
    sleep(Duration::from_secs(5)).await;
    let claim = open_fast_path(&outbox).await?;
    enqueue_with_claim(&database, std::slice::from_ref(&other), claim).await?;
    outbox.dispatch(claim, vec![other.clone()]);
    handler.wait_for_all(&[other]).await?;
    assert!(!handler.ids().contains(&isolated.id()), "it was published before its time");
    execute_on(&database, "UPDATE outbox SET next_attempt_at = 0").await?;
    // The running relay looks for isolated events again only after half a minute; a new one after three seconds.
    relay.stop().await?;
    let relay = start_relay(&outbox, &bus);
    handler.wait_for_all(&[isolated]).await?;
    relay.stop().await?;
    consumer.stop().await
}

#[tokio::test]
async fn events_dispatched_in_an_outage_are_released() -> Result<()> {
    let (_kept, database) = sqlite_database().await?;
    let outbox = Outbox::new(database.clone());
    let (proxy, bus) = behind_a_proxy().await?;
    let (handler, consumer) = Running::done(&bus, ACCEPTED);
    publish(&bus, &accepted()).await?;
    let relay = start_relay(&outbox, &bus);
    let claim = open_fast_path(&outbox).await?;
    proxy.cut();
    eventually("the outage to be noticed", || async { Ok(bus.ping().await.is_err()) }).await?;
    let events: Vec<OutgoingEvent> = (0..300).map(|_| accepted()).collect();
    enqueue_with_claim(&database, &events, claim).await?;
    outbox.dispatch(claim, events.clone());
    relay.stop().await?;
    // Another relay claims them at once.
    proxy.heal();
    eventually("the broker to be back", || async { Ok(bus.ping().await.is_ok()) }).await?;
    run_stopped_relay(&Outbox::new(database.clone()), &bus).await;
    handler.wait_for_all(&events).await?;
    consumer.stop().await
}

/// Waits until the relay has opened the fast path.
async fn open_fast_path(outbox: &Outbox) -> Result<FastPathClaim> {
    eventually("the relay to open the fast path", || async {
        Ok(outbox.claim_fast_path() != FastPathClaim::NONE)
    })
    .await?;
    Ok(outbox.claim_fast_path())
}
