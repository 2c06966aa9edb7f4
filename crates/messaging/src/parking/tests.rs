//! Conformance suite of parked events, on both databases.

use std::collections::HashSet;

use anyhow::Result;
use assay_contracts::event::ConversationAccepted;
use assay_contracts::ids::{EventId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_platform::db::{Database, Migrations};
use assay_platform::runtime::{new_id, now};
use futures_util::future::try_join_all;
use uuid::Uuid;

use super::Parking;
use super::rows::{LEASE_MILLIS, MAX_LEASE_MILLIS, ParkedEvent, Settled};
use crate::conformance::on_both_databases;
use crate::envelope::OutgoingEvent;
use crate::outbox::Outbox;
use crate::test_databases;

static MIGRATIONS: [Migrations; 1] = [crate::MIGRATIONS];

on_both_databases!(
    organizations_take_turns_whatever_each_has_parked,
    share_that_others_leave_is_used,
    concurrent_claims_never_share_an_event,
    claim_expires_with_its_lease_unless_renewed,
    lease_of_a_clock_running_ahead_counts_as_expired,
    event_is_parked_once,
    settled_events_are_removed_released_or_returned,
);

async fn organizations_take_turns_whatever_each_has_parked(database: Database) -> Result<()> {
    let parking = Parking::new(database, 6);
    let [large, small, other] = organizations();
    park(&parking, large, 100).await?;
    let last = claim(&parking, now(), 6).await?;
    assert_eq!(turns(&last), [large; 6], "alone it has every turn");
    park(&parking, other, 100).await?;
    park(&parking, small, 1).await?;
    let claimed = claim(&parking, now(), 6).await?;
    assert_eq!(turns(&claimed), [small, other, large, other, large, other], "after the last turn of `large`");
    let claimed = claim(&parking, now(), 3).await?;
    assert_eq!(turns(&claimed), [large, other, large], "the only event of `small` is claimed");
    Ok(())
}

async fn share_that_others_leave_is_used(database: Database) -> Result<()> {
    let parking = Parking::new(database, 9);
    let [first, second, third] = organizations();
    for (organization, events) in [(first, 1), (second, 100), (third, 2)] {
        park(&parking, organization, events).await?;
    }
    let claimed = claim(&parking, now(), 9).await?;
    let of = |organization| turns(&claimed).iter().filter(|turn| **turn == organization).count();
    assert_eq!((of(first), of(second), of(third)), (1, 6, 2));
    Ok(())
}

async fn concurrent_claims_never_share_an_event(database: Database) -> Result<()> {
    let organizations: Vec<OrganizationId> = (0..5).map(|_| new_id()).collect();
    let parking = Parking::new(database.clone(), 16);
    for organization in &organizations {
        park(&parking, *organization, 60).await?;
    }
    let replicas: Vec<Parking> = (0..6).map(|_| Parking::new(database.clone(), 16)).collect();
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

async fn claim_expires_with_its_lease_unless_renewed(database: Database) -> Result<()> {
    let parking = Parking::new(database, 1);
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

async fn lease_of_a_clock_running_ahead_counts_as_expired(database: Database) -> Result<()> {
    let parking = Parking::new(database, 1);
    park(&parking, new_id(), 1).await?;
    let ahead = now().plus_millis(MAX_LEASE_MILLIS + 1_000);
    assert_eq!(claim(&parking, ahead, 10).await?.len(), 1);
    assert_eq!(claim(&parking, now(), 10).await?.len(), 1);
    Ok(())
}

async fn event_is_parked_once(database: Database) -> Result<()> {
    let parking = Parking::new(database, 1);
    let event = event(new_id());
    parking.park(vec![event.clone()]).await?;
    parking.park(vec![event.clone(), event.clone()]).await?;
    assert_eq!(parking.count(10).await?, 1);
    assert_eq!(claim(&parking, now(), 10).await?[0].event, event);
    parking.park(vec![event]).await?;
    assert!(claim(&parking, now(), 10).await?.is_empty(), "a redelivery does not end the claim");
    Ok(())
}

async fn settled_events_are_removed_released_or_returned(database: Database) -> Result<()> {
    let (parking, outbox) = (Parking::new(database.clone(), 4), Outbox::new(database));
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

/// In ascending order, as the table has them.
fn organizations() -> [OrganizationId; 3] {
    [1, 2, 3].map(|number| Uuid::from_u128(number << 64).into())
}

fn turns(claimed: &[ParkedEvent]) -> Vec<OrganizationId> {
    claimed.iter().map(|parked| parked.event.organization_id).collect()
}

/// As a worker claims.
async fn claim(parking: &Parking, now: Timestamp, limit: usize) -> Result<Vec<ParkedEvent>> {
    let last = *parking.shared.last();
    let organizations = parking.organizations(last, limit).await?;
    let claim = parking.claim(organizations, now, limit).await?;
    if let Some(last) = claim.last {
        *parking.shared.last() = last;
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
