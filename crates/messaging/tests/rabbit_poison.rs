//! Events that end the process, make the handler panic or are refused by the broker: other events are not affected.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod support;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result};
use assay_contracts::ids::EventId;
use assay_messaging::outbox::Outbox;
use assay_messaging::{Bus, Delivery, Handler, Outcome, OutgoingEvent, PublishError, Subscription};
use assay_platform::db::Database;
use assay_testkit::execute_on;
use async_trait::async_trait;
use tokio::sync::Notify;

use support::relaying::{enqueue, sqlite_database, start_relay};
use support::{
    ACCEPTED, AGENTS, Running, Scripted, accepted, agent_created, agent_named, connected, eventually,
    local_bus, publish, rabbit, rabbit_with,
};

const DEAD: &str = "scorer.conversation-accepted.dead";
const ISOLATED: &str = "scorer.conversation-accepted.alone";

/// Events of a batch, one of which (the culprit) ends the process or makes the handler panic.
const EVENTS: usize = 100;

/// The queue of a role that handles batches of 100.
const BATCHES: Subscription = Subscription { max_batch: 100, max_in_flight: 200, ..ACCEPTED };

/// A handler that ends its process (the test aborts its consumer) when it gets the culprit.
struct Fatal {
    culprit: EventId,
    got_culprit: Notify,
    calls: Mutex<Vec<Vec<EventId>>>,
    given_up: Mutex<Vec<EventId>>,
    done: Mutex<HashMap<EventId, u32>>,
    /// How many more calls of `give_up` fail.
    give_up_failures_left: Mutex<u32>,
}

impl Fatal {
    fn new(culprit: EventId) -> Arc<Self> {
        Arc::new(Self {
            culprit,
            got_culprit: Notify::new(),
            calls: Mutex::default(),
            given_up: Mutex::default(),
            done: Mutex::default(),
            give_up_failures_left: Mutex::default(),
        })
    }

    fn done(&self) -> HashMap<EventId, u32> {
        self.done.lock().unwrap().clone()
    }

    /// The numbers of events in the calls with the culprit.
    fn fatal_calls(&self) -> Vec<usize> {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|call| call.contains(&self.culprit)).map(Vec::len).collect()
    }
}

#[async_trait]
impl Handler for Fatal {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        self.calls.lock().unwrap().push(deliveries.iter().map(|delivery| delivery.id).collect());
        if deliveries.iter().any(|delivery| delivery.id == self.culprit) {
            self.got_culprit.notify_one();
            std::future::pending::<()>().await;
        }
        let mut done = self.done.lock().unwrap();
        deliveries.iter().for_each(|delivery| *done.entry(delivery.id).or_default() += 1);
        deliveries.iter().map(|_| Outcome::Done).collect()
    }

    async fn give_up(&self, delivery: &Delivery) -> Result<(), String> {
        let mut failures = self.give_up_failures_left.lock().unwrap();
        if *failures > 0 {
            *failures -= 1;
            return Err("the database is away".to_owned());
        }
        self.given_up.lock().unwrap().push(delivery.id);
        Ok(())
    }
}

/// Runs consumers until the culprit is given up; each is aborted when it gets the culprit. Returns the number of aborts.
async fn run_until_given_up(bus: &Bus, handler: &Arc<Fatal>) -> Result<u32> {
    let mut ended = 0;
    loop {
        let consumer = Running::consumer(bus, BATCHES, handler.clone());
        let given_up = || async { Ok(!handler.given_up.lock().unwrap().is_empty()) };
        tokio::select! {
            () = handler.got_culprit.notified() => {
                ended += 1;
                consumer.abort().await;
            }
            result = eventually("the culprit to be given up", given_up) => {
                result?;
                consumer.stop().await?;
                return Ok(ended);
            }
        }
    }
}

#[tokio::test]
async fn event_that_ends_the_process_becomes_a_dead_letter_alone() -> Result<()> {
    let (bus, wire, _) = rabbit_with(BATCHES).await?;
    let events: Vec<OutgoingEvent> = (0..EVENTS).map(|_| accepted()).collect();
    let culprit = &events[37];
    let handler = Fatal::new(culprit.id());
    *handler.give_up_failures_left.lock().unwrap() = 2;
    assert!(bus.publish(&events).await.iter().all(Result::is_ok));
    let ended = run_until_given_up(&bus, &handler).await?;

    let others: HashSet<EventId> =
        events.iter().map(OutgoingEvent::id).filter(|id| *id != culprit.id()).collect();
    assert_eq!(handler.done().into_keys().collect::<HashSet<_>>(), others);
    // In a large batch, then in one of at most 8, then alone, until the fifth end (`bus::cut_short`).
    let calls = handler.fatal_calls();
    assert!(calls[0] > 8 && calls[1] <= 8 && calls[2..].iter().all(|events| *events == 1), "{calls:?}");
    assert_eq!((ended, calls.len()), (5, 5));
    eventually("the dead letter", || async { Ok(wire.waiting(DEAD).await? == 1) }).await?;
    assert_eq!(String::from_utf8(wire.take(DEAD).await?.body)?, culprit.payload());
    assert_eq!((wire.waiting(ACCEPTED.queue).await?, wire.waiting(ISOLATED).await?), (0, 0));
    Ok(())
}

#[tokio::test]
async fn frequent_ends_of_the_process_make_at_most_one_dead_letter() -> Result<()> {
    let (bus, wire, _) = rabbit_with(BATCHES).await?;
    let events: Vec<OutgoingEvent> = (0..EVENTS).map(|_| accepted()).collect();
    assert!(bus.publish(&events).await.iter().all(Result::is_ok));
    // More ends of the process than an isolated event may have; no event is the cause.
    for _ in 0..8 {
        end_within_a_call(&bus).await?;
    }
    let (handler, consumer) = Running::done(&bus, BATCHES);
    let all_done_or_dead =
        || async { Ok(handler.ids().len() + usize::try_from(wire.waiting(DEAD).await?)? >= EVENTS) };
    eventually("all events", all_done_or_dead).await?;
    consumer.stop().await?;
    // One event may have been the only one in flight each time.
    assert!(wire.waiting(DEAD).await? <= 1);
    Ok(())
}

/// Runs a consumer until it calls its handler, and aborts it.
async fn end_within_a_call(bus: &Bus) -> Result<()> {
    let stuck = Scripted::gated(|_| Outcome::Done);
    let consumer = Running::consumer(bus, BATCHES, stuck.clone());
    eventually("a call", || async { Ok(stuck.begun() > 0) }).await?;
    consumer.abort().await;
    Ok(())
}

/// More ends of the process than an isolated event may have, each soon after its start, while it handles another event.
/// Not many more: each end can leave a second message of every earlier event in the isolation queue.
const EARLY_ENDS: usize = 10;

#[tokio::test]
async fn early_ends_do_not_count_for_isolated_events() -> Result<()> {
    let (bus, wire, _) = rabbit_with(BATCHES).await?;
    for _ in 0..EARLY_ENDS {
        publish(&bus, &accepted()).await?;
        end_within_a_call(&bus).await?;
    }
    let (handler, consumer) = Running::done(&bus, BATCHES);
    let handled = eventually("all events", || async { Ok(handler.ids().len() == EARLY_ENDS) }).await;
    let (waiting, isolated) = (wire.waiting(ACCEPTED.queue).await?, wire.waiting(ISOLATED).await?);
    let handled_events = handler.ids().len();
    handled.with_context(|| format!("{handled_events} handled, {waiting} waiting, {isolated} isolated"))?;
    consumer.stop().await?;
    assert_eq!(wire.waiting(DEAD).await?, 0);
    Ok(())
}

#[tokio::test]
async fn early_ends_do_not_count_for_isolated_events_of_the_local_bus() -> Result<()> {
    let (_kept, database) = sqlite_database().await?;
    let outbox = Outbox::new(database.clone());
    for _ in 0..EARLY_ENDS {
        enqueue(&database, &[accepted()]).await?;
        outbox.release_all_claims().await?;
        make_due(&database).await?;
        let (bus, stuck) = (local_bus(), Scripted::gated(|_| Outcome::Done));
        let consumer = Running::consumer(&bus, BATCHES, stuck.clone());
        let relay = start_relay(&outbox, &bus);
        eventually("a call", || async { Ok(stuck.begun() > 0) }).await?;
        // The relay first: it would record that its consumer has stopped.
        relay.abort().await;
        consumer.abort().await;
    }
    outbox.release_all_claims().await?;
    make_due(&database).await?;
    let (bus, handler) = (local_bus(), Scripted::done());
    let consumer = Running::consumer(&bus, BATCHES, handler.clone());
    let relay = start_relay(&outbox, &bus);
    eventually("all events", || async { Ok(handler.ids().len() == EARLY_ENDS) }).await?;
    relay.stop().await?;
    consumer.stop().await?;
    assert_eq!(outbox.status().await?.dead, 0);
    Ok(())
}

#[tokio::test]
async fn handler_that_panics_on_one_event_is_called_with_each() -> Result<()> {
    for (bus, name) in [(local_bus(), "local"), (rabbit().await?.0, "rabbit")] {
        let events: Vec<OutgoingEvent> = (0..EVENTS).map(|_| accepted()).collect();
        let culprit = events[5].id();
        let handler = Scripted::new(move |delivery| {
            assert!(delivery.id != culprit, "a bug that this event reaches");
            Outcome::Done
        });
        let consumer = Running::consumer(&bus, BATCHES, handler.clone());
        publish(&bus, &accepted()).await?;
        let results = bus.publish(&events).await;
        eventually("the others", || async {
            let done = handled_without(&handler, culprit);
            Ok(events.iter().filter(|event| done.contains(&event.id())).count() == EVENTS - 1)
        })
        .await?;
        if name == "local" {
            let failed: Vec<_> = results.iter().filter(|result| result.is_err()).collect();
            assert!(matches!(failed[..], [Err(PublishError::Retry { .. })]), "{failed:?}");
        }
        consumer.stop().await?;
    }
    Ok(())
}

/// Events in calls without the culprit.
fn handled_without(handler: &Scripted, culprit: EventId) -> HashSet<EventId> {
    let batches = handler.batches();
    let good = batches.iter().filter(|batch| batch.iter().all(|delivery| delivery.id != culprit));
    good.flatten().map(|delivery| delivery.id).collect()
}

/// As in standalone: the process is killed while its relay publishes on the local bus.
#[tokio::test]
async fn event_that_ends_the_process_is_dead_alone_on_the_local_bus() -> Result<()> {
    let (_kept, database) = sqlite_database().await?;
    let events: Vec<OutgoingEvent> = (0..EVENTS).map(|_| accepted()).collect();
    let culprit = &events[37];
    let handler = Fatal::new(culprit.id());
    enqueue(&database, &events).await?;
    let mut ended = 0;
    loop {
        let (bus, outbox) = (local_bus(), Outbox::new(database.clone()));
        outbox.release_all_claims().await?;
        make_due(&database).await?;
        let consumer = Running::consumer(&bus, BATCHES, handler.clone());
        let relay = start_relay(&outbox, &bus);
        let given_up =
            || async { Ok(outbox.status().await?.dead == 1 && outbox.status().await?.pending == 0) };
        tokio::select! {
            () = handler.got_culprit.notified() => {
                ended += 1;
                relay.abort().await;
                consumer.abort().await;
            }
            result = eventually("the culprit to be dead", given_up) => {
                result?;
                let dead = outbox.dead_events(10).await?;
                assert_eq!(dead[0].id, culprit.id());
                assert!(dead[0].last_error.contains("ended 5 times"), "{}", dead[0].last_error);
                assert!(outbox.retry_dead(culprit.id()).await?, "an operator can retry it");
                relay.abort().await;
                consumer.abort().await;
                break;
            }
        }
    }
    assert_eq!(ended, 5);
    assert_eq!(*handler.given_up.lock().unwrap(), [culprit.id()]);
    assert_eq!(handler.done().len(), EVENTS - 1);
    // In a large batch, then in one of at most 8, then alone, until the fifth end (`bus::cut_short`).
    let calls = handler.fatal_calls();
    assert!(calls[0] > 8 && calls[1] <= 8 && calls[2..5].iter().all(|events| *events == 1), "{calls:?}");
    Ok(())
}

/// Skips the delays between ends of the process.
async fn make_due(database: &Database) -> Result<()> {
    let earlier =
        "UPDATE outbox SET next_attempt_at = min(next_attempt_at, created_at) WHERE dead_at IS NULL";
    execute_on(database, earlier).await?;
    Ok(())
}

#[tokio::test]
async fn last_attempt_is_postponed_until_it_can_be_given_up() -> Result<()> {
    let (bus, wire, _) = rabbit_with(ACCEPTED).await?;
    let handler = Arc::new(Failing::default());
    let consumer = Running::consumer(&bus, ACCEPTED, handler.clone());
    publish(&bus, &accepted()).await?;
    eventually("the dead letter", || async { Ok(wire.waiting(DEAD).await? == 1) }).await?;
    consumer.stop().await?;
    let attempts: Vec<u32> = handler.attempts.lock().unwrap().clone();
    assert_eq!(attempts, [1, 2, 3, 3, 3], "three attempts, then as often as giving up fails");
    Ok(())
}

/// Fails each attempt, and fails to give up the first two times.
#[derive(Default)]
struct Failing {
    attempts: Mutex<Vec<u32>>,
    given_up: Mutex<u32>,
}

#[async_trait]
impl Handler for Failing {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        self.attempts.lock().unwrap().extend(deliveries.iter().map(|delivery| delivery.attempt));
        deliveries.iter().map(|_| Outcome::Retry { reason: "no".to_owned() }).collect()
    }

    async fn give_up(&self, _: &Delivery) -> Result<(), String> {
        let mut given_up = self.given_up.lock().unwrap();
        *given_up += 1;
        if *given_up < 3 { Err("the database is away".to_owned()) } else { Ok(()) }
    }
}

#[tokio::test]
async fn event_that_the_broker_refuses_does_not_block_others() -> Result<()> {
    let (_kept, database) = sqlite_database().await?;
    let (bus, _, _) = rabbit().await?;
    let (handler, consumer) = Running::done(&bus, AGENTS);
    connected(&bus).await?;
    // Larger than the broker's limit of 16 MiB: refused also when it is published together with others.
    let refused = agent_named("x".repeat(17 * 1024 * 1024));
    let small = [agent_created(), agent_created()];
    let results = bus.publish(&[small[0].clone(), refused.clone(), small[1].clone()]).await;
    assert!(matches!(&results[..], [Ok(()), Err(PublishError::Refused { .. }), Ok(())]), "{results:?}");

    let outbox = Outbox::new(database.clone());
    let relay = start_relay(&outbox, &bus);
    enqueue(&database, std::slice::from_ref(&refused)).await?;
    let others: Vec<OutgoingEvent> = (0..20).map(|_| agent_created()).collect();
    enqueue(&database, &others).await?;
    outbox.wake();
    handler.wait_for_all(&others).await?;
    let status = || async {
        let status = outbox.status().await?;
        Ok(status.pending <= 1 && status.last_error.is_some_and(|error| error.contains("refused")))
    };
    eventually("only the refused one to be left", status).await?;
    eventually("the refused event to be dead", || async { Ok(outbox.status().await?.dead == 1) }).await?;
    relay.stop().await?;
    consumer.stop().await
}
