//! Conformance suite of parked events, on both databases.

#![allow(clippy::disallowed_methods, reason = "tests spawn what they observe")]

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use assay_contracts::event::{ConversationAccepted, Event};
use assay_contracts::ids::{EventId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_platform::runtime::{LockExt as _, new_id, now};
use assay_testkit::on_both_databases;
use async_trait::async_trait;
use futures_util::future::try_join_all;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::rows::{LEASE_MILLIS, MAX_LEASE_MILLIS, ParkedEvent, Settled};
use super::worker::MAX_FAILURES;
use super::{ParkedWork, Parking, Shared};
use crate::bus::{Bus, Delivery, Handler, Outcome, Subscription};
use crate::envelope::OutgoingEvent;
use crate::outbox::{self, Outbox};
use crate::settings::BusSettings;
use crate::test_tables::Tables;

on_both_databases! { Tables {
    organizations_take_turns_however_many_events_each_has,
    unused_share_goes_to_other_organizations,
    concurrent_claims_never_share_an_event,
    claim_expires_with_its_lease_unless_renewed,
    lease_of_a_clock_running_ahead_counts_as_expired,
    event_is_parked_once,
    settled_events_are_removed_released_or_returned,
    released_claims_do_not_count,
    event_that_is_dead_in_the_outbox_is_not_returned_twice,
    chunk_without_claimable_events_wakes_no_worker,
    parked_event_without_room_is_not_overtaken,
    priority_lane_handles_small_backlogs_only,
    delivery_cut_short_twice_is_isolated_and_not_parked,
    event_that_ended_two_processes_returns_with_its_count,
    lone_event_that_always_fails_returns_after_many_failures,
} }

/// Fails all deliveries or none, and remembers their counts of `cut_short`.
#[derive(Default)]
struct Recorder {
    fails: bool,
    cut_short: Mutex<Vec<u32>>,
}

#[async_trait]
impl Handler for Recorder {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        let mut cut_short = self.cut_short.lock().expect("not poisoned");
        cut_short.extend(deliveries.iter().map(|delivery| delivery.cut_short));
        let outcome = match self.fails {
            true => Outcome::Retry { reason: "always".to_owned() },
            false => Outcome::Done,
        };
        vec![outcome; deliveries.len()]
    }
}

impl Recorder {
    fn cut_short_counts(&self) -> Vec<u32> {
        self.cut_short.lock().expect("not poisoned").clone()
    }
}

async fn organizations_take_turns_however_many_events_each_has(Tables(database, _): Tables) -> Result<()> {
    let parking = Parking::new(database, 6..=6);
    let [large, small, other] = organizations();
    park(&parking, large, 100).await?;
    let claimed = claim(&parking, now(), 6).await?;
    assert_eq!(turns(&claimed), [large; 6], "the only organization has every turn");
    park(&parking, other, 100).await?;
    park(&parking, small, 1).await?;
    let claimed = claim(&parking, now(), 6).await?;
    assert_eq!(turns(&claimed), [small, other, large, other, large, other], "after the last turn of `large`");
    let claimed = claim(&parking, now(), 3).await?;
    assert_eq!(turns(&claimed), [large, other, large], "the only event of `small` is claimed");
    Ok(())
}

async fn unused_share_goes_to_other_organizations(Tables(database, _): Tables) -> Result<()> {
    let parking = Parking::new(database, 9..=9);
    let [first, second, third] = organizations();
    for (organization, events) in [(first, 1), (second, 100), (third, 2)] {
        park(&parking, organization, events).await?;
    }
    let claimed = claim(&parking, now(), 9).await?;
    let of = |organization| turns(&claimed).iter().filter(|turn| **turn == organization).count();
    assert_eq!((of(first), of(second), of(third)), (1, 6, 2));
    Ok(())
}

async fn concurrent_claims_never_share_an_event(Tables(database, _): Tables) -> Result<()> {
    let organizations: Vec<OrganizationId> = (0..5).map(|_| new_id()).collect();
    let parking = Parking::new(database.clone(), 16..=16);
    for organization in &organizations {
        park(&parking, *organization, 60).await?;
    }
    let replicas: Vec<Parking> = (0..6).map(|_| Parking::new(database.clone(), 16..=16)).collect();
    let mut claimed = Vec::new();
    loop {
        let round = try_join_all(replicas.iter().map(|replica| claim(replica, now(), 17))).await?.concat();
        if round.is_empty() {
            break;
        }
        claimed.extend(round.iter().map(|parked| parked.event.id));
    }
    assert_eq!(claimed.len(), 300);
    assert_eq!(claimed.into_iter().collect::<HashSet<EventId>>().len(), 300, "an event was claimed twice");
    Ok(())
}

async fn claim_expires_with_its_lease_unless_renewed(Tables(database, _): Tables) -> Result<()> {
    let parking = Parking::new(database, 1..=1);
    park(&parking, new_id(), 1).await?;
    let start = now();
    let claimed = claim(&parking, start, 10).await?;
    assert_eq!(claimed[0].earlier_claims, 0);
    let expired = start.plus_millis(LEASE_MILLIS);
    assert!(claim(&parking, expired.plus_millis(-1), 10).await?.is_empty());
    parking.renew(vec![claimed[0].key()], start.plus_millis(10)).await?;
    assert!(claim(&parking, expired, 10).await?.is_empty());
    let again = claim(&parking, expired.plus_millis(10), 10).await?;
    assert_eq!((again.len(), again[0].earlier_claims), (1, 1));
    Ok(())
}

async fn lease_of_a_clock_running_ahead_counts_as_expired(Tables(database, _): Tables) -> Result<()> {
    let parking = Parking::new(database, 1..=1);
    park(&parking, new_id(), 1).await?;
    let ahead = now().plus_millis(MAX_LEASE_MILLIS + 1_000);
    assert_eq!(claim(&parking, ahead, 10).await?.len(), 1);
    assert_eq!(claim(&parking, now(), 10).await?.len(), 1);
    Ok(())
}

async fn event_is_parked_once(Tables(database, _): Tables) -> Result<()> {
    let parking = Parking::new(database, 1..=1);
    let event = event(new_id());
    parking.park(vec![event.clone()]).await?;
    parking.park(vec![event.clone(), event.clone()]).await?;
    assert_eq!(parking.count(10).await?, 1);
    assert_eq!(claim(&parking, now(), 10).await?[0].event, event);
    parking.park(vec![event]).await?;
    assert!(claim(&parking, now(), 10).await?.is_empty(), "a redelivery does not end the claim");
    Ok(())
}

async fn settled_events_are_removed_released_or_returned(Tables(database, _): Tables) -> Result<()> {
    let (parking, outbox) = (Parking::new(database.clone(), 4..=4), Outbox::new(database));
    park(&parking, new_id(), 4).await?;
    let claimed = claim(&parking, now(), 4).await?;
    let settled = Settled {
        done: vec![claimed[0].key()],
        released: vec![claimed[1].key()],
        returned: vec![claimed[2].event.clone()],
    };
    parking.settle(settled).await?;
    assert_eq!(parking.count(10).await?, 2);
    let again = claim(&parking, now(), 4).await?;
    assert_eq!(again.iter().map(ParkedEvent::key).collect::<Vec<_>>(), [claimed[1].key()]);
    let status = outbox.status().await?;
    assert_eq!((status.pending, status.dead), (1, 0), "the returned one waits to be published");
    parking.settle(Settled::default()).await?;
    Ok(())
}

async fn released_claims_do_not_count(Tables(database, _): Tables) -> Result<()> {
    let parking = Parking::new(database, 1..=1);
    park(&parking, new_id(), 1).await?;
    for _ in 0..8 {
        let claimed = claim(&parking, now(), 1).await?;
        assert_eq!(claimed[0].earlier_claims, 0, "an outage is not a crash");
        parking.settle(Settled { released: vec![claimed[0].key()], ..Settled::default() }).await?;
    }
    let crashed = now().plus_millis(-2 * LEASE_MILLIS);
    claim(&parking, crashed, 1).await?;
    assert_eq!(claim(&parking, now(), 1).await?[0].earlier_claims, 1);
    Ok(())
}

async fn event_that_is_dead_in_the_outbox_is_not_returned_twice(Tables(database, _): Tables) -> Result<()> {
    let (parking, outbox) = (Parking::new(database.clone(), 2..=2), Outbox::new(database));
    let (dead, other) = (event(new_id()), event(new_id()));
    parking.park(vec![dead.clone()]).await?;
    parking.settle(Settled { returned: vec![dead.clone()], ..Settled::default() }).await?;
    let (bus, stop) = (local_bus(Arc::new(Rejecting)).await?, CancellationToken::new());
    let relay = tokio::spawn(outbox::relay(outbox.clone(), bus, stop.clone()));
    while outbox.status().await?.dead == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    stop.cancel();
    relay.await?;
    parking.park(vec![dead.clone(), other.clone()]).await?;
    parking.settle(Settled { returned: vec![dead, other], ..Settled::default() }).await?;
    assert_eq!(parking.count(10).await?, 0);
    let status = outbox.status().await?;
    assert_eq!((status.pending, status.dead), (1, 1), "the dead one stays, the other one waits");
    Ok(())
}

async fn chunk_without_claimable_events_wakes_no_worker(Tables(database, _): Tables) -> Result<()> {
    let parking = Parking::new(database, 2..=2);
    for organization in organizations() {
        park(&parking, organization, 1).await?;
    }
    assert_eq!(claim(&parking, now(), 4).await?.len(), 3);
    let work = work(&parking, Arc::new(Recorder::default()))?;
    let stop = CancellationToken::new();
    for _ in 0..3 {
        assert_eq!(parking.handle_chunk(&work, 0, &stop).await, Ok(false));
        let woken = timeout(Duration::from_millis(50), parking.shared.turns.changed.notified()).await;
        assert!(woken.is_err(), "it would look again at once, forever");
        assert!(!parking.shared.may_hold_unclaimed.load(Ordering::Relaxed), "deliveries need not be parked");
    }
    assert!(
        parking
            .shared
            .turns
            .try_acquire(super::lane::WORKERS * parking.shared.turns.chunk_size.get())
            .is_some(),
        "every permit is released"
    );
    Ok(())
}

async fn parked_event_without_room_is_not_overtaken(Tables(database, _): Tables) -> Result<()> {
    let parking = Parking::new(database, 2..=2);
    park(&parking, new_id(), 1).await?;
    let work = work(&parking, Arc::new(Recorder::default()))?;
    // Of the four permits one is left: too few for a chunk.
    let _in_flight = parking.shared.turns.try_acquire(3).expect("room");
    assert_eq!(parking.handle_chunk(&work, 0, &CancellationToken::new()).await, Ok(false));
    assert!(parking.shared.may_hold_unclaimed.load(Ordering::Relaxed));
    Ok(())
}

async fn priority_lane_handles_small_backlogs_only(Tables(database, _): Tables) -> Result<()> {
    let parking = Parking::new(database, 8..=8);
    let [large, small, other] = organizations();
    for (organization, events) in [(large, 201), (small, 2), (other, 3)] {
        park(&parking, organization, events).await?;
    }
    let handler = Arc::new(Recorder::default());
    let (unused, priority_handler) = (Arc::new(Recorder::default()), handler.clone());
    let work = ParkedWork { priority_handler, ..work(&parking, unused.clone())? };
    let stop = CancellationToken::new();
    assert_eq!(parking.handle_priority_chunk(&work, &stop).await, Ok(false), "no delivery has to wait");
    parking.shared.may_hold_unclaimed.store(true, Ordering::Relaxed);
    assert_eq!(parking.handle_priority_chunk(&work, &stop).await, Ok(true));
    assert_eq!(parking.handle_priority_chunk(&work, &stop).await, Ok(false));
    let handled = [handler, unused].map(|handler| handler.cut_short_counts().len());
    assert_eq!((handled, parking.count(1_000).await?), ([5, 0], 201));
    let done = claim(&parking, now(), 1).await?.iter().map(ParkedEvent::key).collect();
    parking.settle(Settled { done, ..Settled::default() }).await?;
    assert_eq!(parking.handle_priority_chunk(&work, &stop).await, Ok(true), "its backlog is small now");
    Ok(())
}

async fn delivery_cut_short_twice_is_isolated_and_not_parked(Tables(database, _): Tables) -> Result<()> {
    let parking = Parking::new(database, 2..=2);
    let handler = Arc::new(Recorder::default());
    let in_front = parking.in_front_of(handler.clone());
    let Shared { turns, priority, .. } = &*parking.shared;
    for (cut_short, lane, others) in [(1, turns, 3), (2, turns, 1), (2, priority, 1)] {
        let mut delivery = Delivery::parse(event(new_id()).payload.as_bytes(), 1)?;
        delivery.cut_short = cut_short;
        let in_flight = lane.try_acquire(others).expect("room");
        let deliveries = [delivery];
        let handling = in_front.handle(&deliveries);
        tokio::pin!(handling);
        if cut_short == 2 {
            let early = timeout(Duration::from_millis(50), &mut handling).await;
            assert!(early.is_err(), "another event is in flight");
            let begins = turns.try_acquire(1).is_some() || lane.try_acquire(2).is_some();
            assert!(!begins, "nothing else begins before it");
            drop(in_flight);
        }
        // An event cut short once is handled beside those in flight: `in_flight` lives until the end of the round.
        assert_eq!(handling.await, [Outcome::Done]);
    }
    assert_eq!(handler.cut_short_counts(), [1, 2, 2]);
    assert_eq!(parking.count(10).await?, 0);
    Ok(())
}

async fn event_that_ended_two_processes_returns_with_its_count(Tables(database, _): Tables) -> Result<()> {
    let (parking, outbox) = (Parking::new(database.clone(), 2..=2), Outbox::new(database));
    park(&parking, new_id(), 1).await?;
    // Two claims whose leases have expired: their processes ended.
    for leases in [4, 2] {
        assert_eq!(claim(&parking, now().plus_millis(-leases * LEASE_MILLIS), 1).await?.len(), 1);
    }
    let handler = Arc::new(Recorder::default());
    let bus = local_bus(parking.in_front_of(handler.clone())).await?;
    let work = ParkedWork { outbox: outbox.clone(), bus: bus.clone(), ..work(&parking, handler.clone())? };
    let stop = CancellationToken::new();
    let relay = tokio::spawn(outbox::relay(outbox, bus, stop.clone()));
    // By then the relay has looked for isolated events and found none: the returned event must make it look again.
    sleep(crate::bus::cut_short::ISOLATION_START_DELAY + Duration::from_millis(1_500)).await;
    assert_eq!(parking.handle_chunk(&work, 0, &stop).await, Ok(true));
    while handler.cut_short_counts().is_empty() {
        sleep(Duration::from_millis(10)).await;
    }
    stop.cancel();
    relay.await?;
    assert_eq!((handler.cut_short_counts(), parking.count(10).await?), (vec![2], 0));
    Ok(())
}

async fn lone_event_that_always_fails_returns_after_many_failures(Tables(database, _): Tables) -> Result<()> {
    let (parking, outbox) = (Parking::new(database.clone(), 2..=2), Outbox::new(database));
    park(&parking, new_id(), 1).await?;
    let work = work(&parking, Arc::new(Recorder { fails: true, ..Recorder::default() }))?;
    let stop = CancellationToken::new();
    for failures in 0..MAX_FAILURES {
        let handled = parking.handle_chunk(&work, failures, &stop).await;
        assert_eq!(handled, Err("always".to_owned()), "{failures}");
    }
    assert_eq!((parking.count(10).await?, outbox.status().await?.pending), (1, 0));
    assert_eq!(parking.handle_chunk(&work, MAX_FAILURES, &stop).await, Ok(true));
    assert_eq!((parking.count(10).await?, outbox.status().await?.pending), (0, 1));
    Ok(())
}

struct Rejecting;

#[async_trait]
impl Handler for Rejecting {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        vec![Outcome::Reject { reason: "never".to_owned() }; deliveries.len()]
    }
}

/// A local bus with a consumer until the end of the test.
async fn local_bus(handler: Arc<dyn Handler>) -> Result<Bus> {
    let bus = Bus::open(&BusSettings::new("local:"))?;
    let subscription = Subscription {
        queue: "test.conversation-accepted",
        topics: &[ConversationAccepted::TOPIC],
        max_batch: 4,
        max_in_flight: 4,
    };
    let consumed = bus.clone();
    tokio::spawn(async move { consumed.consume(subscription, handler, CancellationToken::new()).await });
    tokio::task::yield_now().await;
    Ok(bus)
}

fn work(parking: &Parking, handler: Arc<Recorder>) -> Result<ParkedWork> {
    let outbox = Outbox::new(parking.database.clone());
    let bus = Bus::open(&BusSettings::new("local:"))?;
    Ok(ParkedWork { queue: "parked", handler: handler.clone(), priority_handler: handler, outbox, bus })
}

/// In ascending order, as the table has them.
fn organizations() -> [OrganizationId; 3] {
    [1, 2, 3].map(|number| Uuid::from_u128(number << 64).into())
}

fn turns(claimed: &[ParkedEvent]) -> Vec<OrganizationId> {
    claimed.iter().map(|parked| parked.event.organization_id).collect()
}

/// Claims as a worker does: beginning with the organization after the last turn.
async fn claim(parking: &Parking, now: Timestamp, limit: usize) -> Result<Vec<ParkedEvent>> {
    let last_turn = *parking.shared.turns.last_turn.locked();
    let organizations = parking.organizations(last_turn, limit).await?;
    let claim = parking.claim(organizations, now, limit).await?;
    if let Some(last_turn) = claim.last_turn {
        *parking.shared.turns.last_turn.locked() = last_turn;
    }
    Ok(claim.events)
}

async fn park(parking: &Parking, organization: OrganizationId, events: usize) -> Result<()> {
    Ok(parking.park((0..events).map(|_| event(organization)).collect()).await?)
}

fn event(organization_id: OrganizationId) -> OutgoingEvent {
    let accepted = ConversationAccepted { organization_id, ticket_id: new_id(), accepted_at: now() };
    OutgoingEvent::new(new_id(), now(), &accepted).expect("encodes")
}
