//! Conformance suite of the outbox, on both databases.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::Result;
use assay_contracts::agent::AgentFacts;
use assay_contracts::event::AgentCreated;
use assay_contracts::ids::EventId;
use assay_contracts::time::Timestamp;
use assay_platform::db::{Database, DatabaseError};
use assay_platform::runtime::{new_id, now};
use assay_testkit::{on_both_databases, write_on};
use futures_util::future::try_join_all;

use super::rows::{BatchLimit, LEASE_MILLIS, MAX_SCHEDULE_MILLIS, Postponed, PublishResults};
use super::{Connection as _, FastPathClaim, Outbox};
use crate::envelope::OutgoingEvent;
use crate::test_tables::Tables;

on_both_databases! { Tables {
    claim_returns_enqueued_events,
    rolled_back_events_are_not_claimed,
    concurrent_claims_never_share_a_row,
    claim_expires_with_its_lease_unless_renewed,
    longest_due_rows_are_claimed_first,
    claim_is_bounded_by_bytes_of_payload,
    published_rows_are_deleted,
    released_rows_are_claimable_at_once_without_an_attempt,
    postponed_row_is_due_at_its_time_and_counts_the_attempt,
    dead_row_is_listed_and_not_claimed_until_retried,
    only_dead_rows_can_be_dropped,
    oldest_unpublished_is_the_oldest_pending_event,
    claims_of_crashed_relays_can_be_released_at_once,
    clock_skew_repair_reschedules_late_rows,
    organizations_with_much_of_the_backlog_are_found,
} }

async fn claim_returns_enqueued_events(Tables(database, _): Tables) -> Result<()> {
    let (outbox, event) = with_one_event(database).await?;
    let claimed = outbox.claim(now(), up_to(10)).await?;
    assert_eq!(claimed.iter().map(|row| row.event.clone()).collect::<Vec<_>>(), [event]);
    Ok(())
}

async fn rolled_back_events_are_not_claimed(Tables(database, _): Tables) -> Result<()> {
    let events = vec![event()];
    let aborted: Result<(), DatabaseError> = write_on!(&database, |connection| {
        connection.enqueue_events(&events, FastPathClaim::NONE)?;
        Err(DatabaseError::Corrupt("roll back".to_owned()))
    });
    assert!(aborted.is_err());
    assert!(Outbox::new(database).claim(now(), up_to(10)).await?.is_empty());
    Ok(())
}

async fn concurrent_claims_never_share_a_row(Tables(database, _): Tables) -> Result<()> {
    let events: Vec<_> = (0..500).map(|_| event()).collect();
    let expected: HashSet<EventId> = events.iter().map(OutgoingEvent::id).collect();
    enqueue(&database, events).await?;
    let replicas: Vec<Outbox> = (0..6).map(|_| Outbox::new(database.clone())).collect();
    let mut claimed = Vec::new();
    loop {
        let round = try_join_all(replicas.iter().map(|replica| replica.claim(now(), up_to(17)))).await?;
        let round: Vec<_> = round.concat();
        if round.is_empty() {
            break;
        }
        claimed.extend(round.iter().map(|row| row.event.id));
    }
    assert_eq!(claimed.len(), expected.len(), "a row was claimed twice or never");
    assert_eq!(claimed.into_iter().collect::<HashSet<_>>(), expected);
    Ok(())
}

async fn claim_expires_with_its_lease_unless_renewed(Tables(database, _): Tables) -> Result<()> {
    let (outbox, event) = with_one_event(database).await?;
    let start = now();
    assert_eq!(outbox.claim(start, up_to(10)).await?.len(), 1);
    let expired = start.plus_millis(LEASE_MILLIS);
    assert!(outbox.claim(expired.plus_millis(-1), up_to(10)).await?.is_empty());
    outbox.renew(vec![event.id], start.plus_millis(10)).await?;
    assert!(outbox.claim(expired, up_to(10)).await?.is_empty());
    assert_eq!(outbox.claim(expired.plus_millis(10), up_to(10)).await?.len(), 1);
    Ok(())
}

async fn longest_due_rows_are_claimed_first(Tables(database, _): Tables) -> Result<()> {
    let (first, second) = (event(), event());
    enqueue(&database, vec![second.clone(), first.clone()]).await?;
    let outbox = Outbox::new(database);
    let start = now();
    outbox.claim(start, up_to(10)).await?;
    postpone(&outbox, vec![failed(&first, start.plus_millis(5)), failed(&second, start.plus_millis(9))])
        .await?;
    let claimed = outbox.claim(start.plus_millis(10), up_to(1)).await?;
    assert_eq!(claimed[0].event.id, first.id);
    Ok(())
}

async fn claim_is_bounded_by_bytes_of_payload(Tables(database, _): Tables) -> Result<()> {
    let sized = |bytes: usize| OutgoingEvent { payload: "x".repeat(bytes), ..event() };
    let outbox = Outbox::new(database.clone());
    // Beyond the size at which PostgreSQL stores a value outside its row; the third one exceeds the limit alone.
    for bytes in [40_000, 40_000, 120_000, 40_000, 10] {
        enqueue(&database, vec![sized(bytes)]).await?;
        // One after the other: due in this order.
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let limit = BatchLimit { events: 10, bytes: 100_000 };
    for expected in [vec![40_000, 40_000], vec![120_000], vec![40_000, 10], vec![]] {
        let claimed = outbox.claim(now(), limit).await?;
        assert_eq!(claimed.iter().map(|row| row.event.payload.len()).collect::<Vec<_>>(), expected);
    }
    Ok(())
}

async fn published_rows_are_deleted(Tables(database, _): Tables) -> Result<()> {
    let (published, other) = (event(), event());
    enqueue(&database, vec![published.clone(), other.clone()]).await?;
    let outbox = Outbox::new(database);
    let start = now();
    outbox.claim(start, up_to(10)).await?;
    record_results(&outbox, PublishResults { published: vec![published.id], ..PublishResults::default() })
        .await?;
    let left = outbox.claim(start.plus_millis(LEASE_MILLIS), up_to(10)).await?;
    assert_eq!(left.iter().map(|row| row.event.id).collect::<Vec<_>>(), [other.id]);
    assert_eq!(outbox.status().await?.pending, 1);
    Ok(())
}

async fn released_rows_are_claimable_at_once_without_an_attempt(Tables(database, _): Tables) -> Result<()> {
    let (outbox, event) = with_one_event(database).await?;
    outbox.claim(now(), up_to(10)).await?;
    record_results(&outbox, PublishResults { released: vec![event.id], ..PublishResults::default() }).await?;
    let again = outbox.claim(now(), up_to(10)).await?;
    assert_eq!(again.iter().map(|row| row.event.attempt).collect::<Vec<_>>(), [1]);
    Ok(())
}

async fn postponed_row_is_due_at_its_time_and_counts_the_attempt(Tables(database, _): Tables) -> Result<()> {
    let (outbox, event) = with_one_event(database).await?;
    let start = now();
    outbox.claim(start, up_to(10)).await?;
    let later = start.plus_millis(60_000);
    postpone(&outbox, vec![failed(&event, later)]).await?;
    assert!(outbox.claim(later.plus_millis(-1), up_to(10)).await?.is_empty());
    let again = outbox.claim(later, up_to(10)).await?;
    assert_eq!(again.iter().map(|row| row.event.attempt).collect::<Vec<_>>(), [2]);
    Ok(())
}

async fn dead_row_is_listed_and_not_claimed_until_retried(Tables(database, _): Tables) -> Result<()> {
    let (outbox, event) = with_one_event(database).await?;
    mark_dead(&outbox, &event).await?;
    let far = now().plus_millis(10 * LEASE_MILLIS);
    assert!(outbox.claim(far, up_to(10)).await?.is_empty());
    let status = outbox.status().await?;
    assert_eq!((status.pending, status.oldest_pending, status.dead), (0, None, 1));
    let dead = outbox.dead_events(10).await?;
    assert_eq!((dead[0].id, dead[0].attempts, dead[0].last_error.as_str()), (event.id, 1, "poisoned"));
    assert_eq!(dead[0].payload, event.payload);

    assert!(outbox.retry_dead(event.id).await?);
    assert_eq!(outbox.claim(far, up_to(10)).await?[0].event.attempt, 1);
    assert!(!outbox.retry_dead(event.id).await?, "it is dead no more");
    Ok(())
}

async fn only_dead_rows_can_be_dropped(Tables(database, _): Tables) -> Result<()> {
    let (dead, alive) = (event(), event());
    enqueue(&database, vec![dead.clone(), alive.clone()]).await?;
    let outbox = Outbox::new(database);
    mark_dead(&outbox, &dead).await?;
    assert!(!outbox.drop_dead(alive.id).await?);
    assert!(outbox.drop_dead(dead.id).await?);
    assert!(!outbox.drop_dead(dead.id).await?);
    let status = outbox.status().await?;
    assert_eq!((status.pending, status.dead), (1, 0));
    Ok(())
}

async fn oldest_unpublished_is_the_oldest_pending_event(Tables(database, _): Tables) -> Result<()> {
    let outbox = Outbox::new(database.clone());
    assert_eq!(outbox.oldest_unpublished().await?, None);
    let before = now();
    enqueue(&database, vec![event()]).await?;
    let oldest = outbox.oldest_unpublished().await?;
    let after_first = now();
    enqueue(&database, vec![event()]).await?;
    assert!(oldest.is_some_and(|oldest| before <= oldest && oldest <= after_first), "{oldest:?}");
    assert_eq!(outbox.oldest_unpublished().await?, oldest);
    Ok(())
}

async fn claims_of_crashed_relays_can_be_released_at_once(Tables(database, _): Tables) -> Result<()> {
    enqueue(&database, vec![event(), event()]).await?;
    let outbox = Outbox::new(database);
    assert_eq!(outbox.claim(now(), up_to(1)).await?.len(), 1);
    outbox.release_all_claims().await?;
    assert_eq!(outbox.claim(now(), up_to(10)).await?.len(), 2);
    Ok(())
}

async fn clock_skew_repair_reschedules_late_rows(Tables(database, _): Tables) -> Result<()> {
    let (postponed_row, claimed_row, proper_row) = (event(), event(), event());
    let outbox = Outbox::new(database.clone());
    let right = now();
    let ahead = right.plus_millis(2 * MAX_SCHEDULE_MILLIS);
    enqueue(&database, vec![postponed_row.clone(), claimed_row.clone(), proper_row.clone()]).await?;
    outbox.claim(ahead, up_to(10)).await?;
    let proper = right.plus_millis(MAX_SCHEDULE_MILLIS);
    postpone(&outbox, vec![failed(&postponed_row, ahead), failed(&proper_row, proper)]).await?;
    assert!(outbox.claim(right, up_to(10)).await?.is_empty());

    outbox.repair_clock_skew(right).await?;
    let claimed: HashSet<EventId> =
        outbox.claim(right, up_to(10)).await?.iter().map(|row| row.event.id).collect();
    assert_eq!(claimed, HashSet::from([postponed_row.id, claimed_row.id]));
    Ok(())
}

async fn organizations_with_much_of_the_backlog_are_found(Tables(database, _): Tables) -> Result<()> {
    let large = event();
    let of_large = (0..5).map(|_| OutgoingEvent { id: new_id(), ..large.clone() });
    enqueue(&database, of_large.chain((0..20).map(|_| event())).collect()).await?;
    let outbox = Outbox::new(database);
    assert_eq!(outbox.organizations_with_backlog(5).await?, [(large.organization_id, 5)]);
    assert_eq!(outbox.organizations_with_backlog(6).await?, []);
    Ok(())
}

/// The outbox after one event was enqueued, and the event.
async fn with_one_event(database: Database) -> Result<(Outbox, OutgoingEvent)> {
    let event = event();
    enqueue(&database, vec![event.clone()]).await?;
    Ok((Outbox::new(database), event))
}

async fn postpone(outbox: &Outbox, postponed: Vec<Postponed>) -> Result<()> {
    record_results(outbox, PublishResults { postponed, ..PublishResults::default() }).await
}

async fn mark_dead(outbox: &Outbox, event: &OutgoingEvent) -> Result<()> {
    outbox.claim(now(), up_to(10)).await?;
    let dead = vec![(event.id, "poisoned".to_owned())];
    record_results(outbox, PublishResults { dead, ..PublishResults::default() }).await
}

async fn record_results(outbox: &Outbox, results: PublishResults) -> Result<()> {
    Ok(outbox.record_results(Arc::new(results), now()).await?)
}

/// A failed attempt, which counts.
fn failed(event: &OutgoingEvent, next_attempt_at: Timestamp) -> Postponed {
    Postponed { id: event.id, counts_attempt: true, next_attempt_at, reason: "not now".to_owned() }
}

async fn enqueue(database: &Database, events: Vec<OutgoingEvent>) -> Result<(), DatabaseError> {
    write_on!(database, |connection| connection.enqueue_events(&events, FastPathClaim::NONE))
}

pub(super) fn event() -> OutgoingEvent {
    let agent = AgentFacts { id: new_id(), external_id: "a".to_owned(), name: "Ä".to_owned() };
    let event = AgentCreated { organization_id: new_id(), agent, created_at: now() };
    OutgoingEvent::new(new_id(), now(), &event).expect("encodes")
}

fn up_to(events: u32) -> BatchLimit {
    BatchLimit { events, ..BatchLimit::UNLIMITED }
}
