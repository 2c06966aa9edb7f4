//! Conformance suite of parked events, on both databases.

#![allow(clippy::disallowed_methods, reason = "tests spawn what they observe")]

mod worker;

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
use super::{ParkedWork, Parking};
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
} }

/// Fails all deliveries or none, and records the `times_cut_short` of each.
#[derive(Default)]
struct Recorder {
    fails: bool,
    times_cut_short: Mutex<Vec<u32>>,
}

#[async_trait]
impl Handler for Recorder {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        let mut times_cut_short = self.times_cut_short.lock().expect("not poisoned");
        times_cut_short.extend(deliveries.iter().map(|delivery| delivery.times_cut_short));
        let outcome = match self.fails {
            true => Outcome::Retry { reason: "always".to_owned() },
            false => Outcome::Done,
        };
        vec![outcome; deliveries.len()]
    }
}

impl Recorder {
    fn times_cut_short(&self) -> Vec<u32> {
        self.times_cut_short.lock().expect("not poisoned").clone()
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
