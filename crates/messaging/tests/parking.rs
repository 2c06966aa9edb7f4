//! Parking, on every combination of a database and a bus: organizations take turns, and no failed event is lost.

#![allow(clippy::disallowed_methods, reason = "tests spawn what they observe")]

#[macro_use]
mod support;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Context as _, Result, anyhow};
use assay_contracts::event::ConversationAccepted;
use assay_contracts::ids::{EventId, OrganizationId};
use assay_messaging::outbox::Outbox;
use assay_messaging::parking::{ParkedWork, Parking};
use assay_messaging::{Bus, Handler, Outcome, OutgoingEvent, Subscription};
use assay_platform::db::Database;
use assay_platform::runtime::{new_id, now};
use assay_testkit::number_on;

use crate::support::relaying::start_relay;
use crate::support::{
    ACCEPTED, Running, Scripted, connected, declare, eventually, local_bus, publish_all, rabbit_bus,
};

/// Events handled together; up to four times that number are in flight.
const CHUNK: usize = 4;
/// Far more than are handled at a time, and more than a small backlog has.
const BACKLOG: usize = 240;

const QUEUE: Subscription = Subscription { max_batch: 16, max_in_flight: 64, ..ACCEPTED };

on_every_stack!(
    small_organization_does_not_wait_for_the_backlog_of_another,
    deliveries_within_the_limit_are_not_parked,
    parked_event_that_fails_is_returned_to_the_bus,
    failing_event_of_a_small_organization_does_not_stop_another,
    outage_keeps_events_parked_until_it_ends,
    events_parked_by_a_stopped_process_are_handled_by_the_next,
);

async fn small_organization_does_not_wait_for_the_backlog_of_another(
    database: Database,
    bus: Bus,
) -> Result<()> {
    declare(&bus, QUEUE).await?;
    let handler = Scripted::gated(|_| Outcome::Done);
    let (_consumer, parking) = consume(&database, &bus, handler.clone());
    let (large, small) = (new_id(), new_id());
    accept(&bus, large, BACKLOG).await?;
    wait_for_backlog(&parking).await?;
    let first_of_small = accept(&bus, small, 1).await?;
    eventually("the small organization's event", || is_parked(&database, small)).await?;
    handler.open();
    handler.wait_for_all(&first_of_small).await?;
    let deliveries = handler.deliveries();
    let came_first = deliveries.iter().take_while(|delivery| delivery.organization_id == large).count();
    // Those in flight when the handler opens, and as many again before the other one is claimed.
    assert!(came_first <= 8 * CHUNK, "{came_first} of the other organization came first");
    eventually("the whole backlog", || async { Ok(handler.ids().len() == BACKLOG + 1) }).await?;
    assert_eq!(handler.deliveries().len(), BACKLOG + 1, "each once");
    wait_until_none_is_parked(&parking).await
}

async fn deliveries_within_the_limit_are_not_parked(database: Database, bus: Bus) -> Result<()> {
    declare(&bus, QUEUE).await?;
    let handler = Scripted::gated(|_| Outcome::Done);
    let (_consumer, parking) = consume(&database, &bus, handler.clone());
    let publishing = {
        let (bus, organization) = (bus.clone(), new_id());
        async move { accept(&bus, organization, 2).await }
    };
    let watching = async {
        eventually("both in flight", || async { Ok(handler.begun() == 2) }).await?;
        assert_eq!(parked(&parking).await?, 0);
        handler.open();
        anyhow::Ok(())
    };
    let (published, watched) = tokio::join!(publishing, watching);
    watched?;
    handler.wait_for_all(&published?).await
}

async fn parked_event_that_fails_is_returned_to_the_bus(database: Database, bus: Bus) -> Result<()> {
    declare(&bus, QUEUE).await?;
    let (failing, attempts) = (Arc::new(OnceLock::<EventId>::new()), Arc::new(AtomicUsize::new(0)));
    let (known, counted) = (failing.clone(), attempts.clone());
    let handler = Scripted::gated(move |delivery| {
        let fails = known.get() == Some(&delivery.id) && counted.fetch_add(1, Ordering::SeqCst) < 2;
        if fails { Outcome::Retry { reason: "not this time".to_owned() } } else { Outcome::Done }
    });
    let (_consumer, parking) = consume(&database, &bus, handler.clone());
    let _relay = start_relay(&Outbox::new(database.clone()), &bus);
    let accepted = accept(&bus, new_id(), BACKLOG).await?;
    wait_for_backlog(&parking).await?;
    // One that is parked, and whose turn comes while the backlog is not small.
    let failed = accepted[4 * CHUNK].id();
    failing.set(failed).map_err(|_| anyhow!("set once"))?;
    handler.open();
    eventually("three attempts", || async { Ok(attempts.load(Ordering::SeqCst) == 3) }).await?;
    let deliveries = handler.deliveries();
    let of_failing: Vec<u32> =
        deliveries.iter().filter(|delivery| delivery.id == failed).map(|delivery| delivery.attempt).collect();
    assert_eq!(of_failing, [1, 1, 2], "parked, then twice on the bus, which counts");
    wait_until_none_is_parked(&parking).await
}

async fn failing_event_of_a_small_organization_does_not_stop_another(
    database: Database,
    bus: Bus,
) -> Result<()> {
    declare(&bus, QUEUE).await?;
    let (failing, other) = (new_id::<OrganizationId>(), new_id());
    let (other_is_done, succeeded) = (AtomicBool::new(false), Arc::new(AtomicBool::new(false)));
    let success = succeeded.clone();
    let handler = Scripted::gated(move |delivery| {
        if delivery.organization_id == other {
            other_is_done.store(true, Ordering::SeqCst);
        }
        let fails = delivery.organization_id == failing && !other_is_done.load(Ordering::SeqCst);
        if delivery.organization_id == failing && !fails {
            success.store(true, Ordering::SeqCst);
        }
        // Postponed: it becomes no dead letter, however long the other one takes.
        if fails { Outcome::Postpone { reason: "not this time".to_owned() } } else { Outcome::Done }
    });
    let (_consumer, parking) = consume(&database, &bus, handler.clone());
    let _relay = start_relay(&Outbox::new(database.clone()), &bus);
    accept(&bus, new_id(), BACKLOG).await?;
    wait_for_backlog(&parking).await?;
    accept(&bus, failing, 1).await?;
    let of_other = accept(&bus, other, 1).await?;
    eventually("both parked", || async {
        Ok(is_parked(&database, failing).await? && is_parked(&database, other).await?)
    })
    .await?;
    handler.open();
    handler.wait_for_all(&of_other).await?;
    eventually("the attempt that succeeds", || async { Ok(succeeded.load(Ordering::SeqCst)) }).await?;
    wait_until_none_is_parked(&parking).await
}

async fn outage_keeps_events_parked_until_it_ends(database: Database, bus: Bus) -> Result<()> {
    declare(&bus, QUEUE).await?;
    let is_down = Arc::new(AtomicBool::new(true));
    let observed = is_down.clone();
    let handler = Scripted::gated(move |_| match observed.load(Ordering::SeqCst) {
        true => Outcome::Retry { reason: "outage".to_owned() },
        false => Outcome::Done,
    });
    let (_consumer, parking) = consume(&database, &bus, handler.clone());
    let _relay = start_relay(&Outbox::new(database.clone()), &bus);
    accept(&bus, new_id(), BACKLOG).await?;
    wait_for_backlog(&parking).await?;
    handler.open();
    eventually("failures", || async { Ok(handler.deliveries().len() >= 4 * CHUNK) }).await?;
    assert!(parked(&parking).await? >= BACKLOG - 4 * CHUNK, "they stay parked");
    is_down.store(false, Ordering::SeqCst);
    wait_until_none_is_parked(&parking).await
}

async fn events_parked_by_a_stopped_process_are_handled_by_the_next(
    database: Database,
    bus: Bus,
) -> Result<()> {
    declare(&bus, QUEUE).await?;
    let stuck = Scripted::gated(|_| Outcome::Done);
    let (consumer, parking) = consume(&database, &bus, stuck.clone());
    let events = accept(&bus, new_id(), BACKLOG).await?;
    wait_for_backlog(&parking).await?;
    consumer.abort().await;
    let handler = Scripted::done();
    let (_consumer, parking) = consume(&database, &bus, handler.clone());
    let done_before = stuck.ids();
    assert!(done_before.is_empty(), "{done_before:?}");
    wait_until_none_is_parked(&parking).await?;
    let _relay = start_relay(&Outbox::new(database.clone()), &bus);
    // The others were let through: RabbitMQ redelivers them, on the local bus their publisher has to publish them again.
    let parked_before = events.iter().filter(|event| handler.ids().contains(&event.id())).count();
    assert!(parked_before >= BACKLOG - 2 * CHUNK, "{parked_before}");
    Ok(())
}

fn consume(database: &Database, bus: &Bus, handler: Arc<dyn Handler>) -> (Running, Parking) {
    let parking = Parking::new(database.clone(), CHUNK..=CHUNK);
    let work = ParkedWork {
        queue: "scorer.parked",
        handler: handler.clone(),
        priority_handler: handler.clone(),
        outbox: Outbox::new(database.clone()),
        bus: bus.clone(),
    };
    let (task_parking, task_bus) = (parking.clone(), bus.clone());
    let running = Running::start(|stop| async move {
        let in_front = task_parking.in_front_of(handler);
        tokio::join!(task_bus.consume(QUEUE, in_front, stop.clone()), task_parking.work(work, stop));
    });
    (running, parking)
}

/// Publishes events of an organization in the background: on the local bus that takes until they are parked or handled.
async fn accept(bus: &Bus, organization_id: OrganizationId, events: usize) -> Result<Vec<OutgoingEvent>> {
    connected(bus).await?;
    let accepted = || ConversationAccepted { organization_id, ticket_id: new_id(), accepted_at: now() };
    let events: Vec<OutgoingEvent> = (0..events)
        .map(|_| OutgoingEvent::new(new_id(), now(), &accepted()))
        .collect::<Result<_, _>>()
        .context("events can be encoded")?;
    let (bus, published) = (bus.clone(), events.clone());
    tokio::spawn(async move { publish_all(&bus, &published).await });
    Ok(events)
}

/// Waits until all events of the backlog are parked, but for those that were let through.
async fn wait_for_backlog(parking: &Parking) -> Result<()> {
    eventually("a backlog", || async { Ok(parked(parking).await? >= BACKLOG - 2 * CHUNK) }).await
}

async fn wait_until_none_is_parked(parking: &Parking) -> Result<()> {
    eventually("an empty table", || async { Ok(parked(parking).await? == 0) }).await
}

async fn is_parked(database: &Database, organization_id: OrganizationId) -> Result<bool> {
    let count = format!("SELECT count(*) FROM parked WHERE organization_id = '{organization_id}'");
    Ok(number_on(database, &count).await? > 0)
}

async fn parked(parking: &Parking) -> Result<usize> {
    Ok(usize::try_from(parking.count(10_000).await?)?)
}
