//! Conformance suite of the inbox, on both databases.

use std::collections::HashSet;

use anyhow::Result;
use assay_contracts::ids::EventId;
use assay_contracts::time::Timestamp;
use assay_platform::db::{Database, DatabaseError};
use assay_platform::runtime::{new_id, now};
use assay_testkit::{on_both_databases, write_on};
use futures_util::future::try_join;

use crate::inbox::Connection as _;
use crate::test_tables::Tables;

on_both_databases! { Tables {
    event_is_new_once_per_consumer,
    record_returns_only_new_events,
    duplicate_in_one_call_is_returned_once,
    events_beyond_one_statement_are_recorded,
    rolled_back_event_is_new_again,
    concurrent_transactions_share_no_event,
    prune_deletes_only_old_records,
} }

async fn event_is_new_once_per_consumer(Tables(database, _): Tables) -> Result<()> {
    let id = new_id();
    assert_eq!(record(&database, "scorer", vec![id]).await?, HashSet::from([id]));
    assert_eq!(record(&database, "scorer", vec![id]).await?, HashSet::new());
    assert_eq!(record(&database, "exporter", vec![id]).await?, HashSet::from([id]));
    Ok(())
}

async fn record_returns_only_new_events(Tables(database, _): Tables) -> Result<()> {
    let (known, new, other) = (new_id(), new_id(), new_id());
    record(&database, "scorer", vec![known]).await?;
    assert_eq!(record(&database, "scorer", vec![new, known, other]).await?, HashSet::from([new, other]));
    Ok(())
}

async fn duplicate_in_one_call_is_returned_once(Tables(database, _): Tables) -> Result<()> {
    let id = new_id();
    assert_eq!(record(&database, "scorer", vec![id, id]).await?, HashSet::from([id]));
    Ok(())
}

async fn events_beyond_one_statement_are_recorded(Tables(database, _): Tables) -> Result<()> {
    let ids: Vec<EventId> = (0..2_500).map(|_| new_id()).collect();
    assert_eq!(record(&database, "scorer", ids.clone()).await?.len(), ids.len());
    assert_eq!(record(&database, "scorer", ids).await?.len(), 0);
    Ok(())
}

async fn rolled_back_event_is_new_again(Tables(database, _): Tables) -> Result<()> {
    let id: EventId = new_id();
    let aborted: Result<(), DatabaseError> = write_on!(&database, |connection| {
        connection.record_events("scorer", &[id], now())?;
        Err(DatabaseError::Corrupt("roll back".to_owned()))
    });
    assert!(aborted.is_err());
    assert_eq!(record(&database, "scorer", vec![id]).await?, HashSet::from([id]));
    Ok(())
}

async fn concurrent_transactions_share_no_event(Tables(database, _): Tables) -> Result<()> {
    for _ in 0..20 {
        let mut ids: Vec<EventId> = (0..50).map(|_| new_id()).collect();
        let forwards = record(&database, "scorer", ids.clone());
        ids.reverse();
        let backwards = record(&database, "scorer", ids.clone());
        let (first, second) = try_join(forwards, backwards).await?;
        assert_eq!(first.len() + second.len(), ids.len());
    }
    Ok(())
}

async fn prune_deletes_only_old_records(Tables(database, _): Tables) -> Result<()> {
    let old: Vec<EventId> = (0..5).map(|_| new_id()).collect();
    let young: EventId = new_id();
    record_at(&database, "scorer", old.clone(), now().plus_millis(-60_000)).await?;
    record(&database, "scorer", vec![young]).await?;
    let before = now().plus_millis(-30_000);
    assert_eq!(prune(&database, before, 3).await?, 3);
    assert_eq!(prune(&database, before, 3).await?, 2);
    assert_eq!(prune(&database, before, 3).await?, 0);
    assert!(record(&database, "scorer", vec![young]).await?.is_empty());
    assert_eq!(record(&database, "scorer", old.clone()).await?.len(), old.len());
    Ok(())
}

async fn record(
    database: &Database,
    consumer: &'static str,
    ids: Vec<EventId>,
) -> Result<HashSet<EventId>, DatabaseError> {
    record_at(database, consumer, ids, now()).await
}

async fn record_at(
    database: &Database,
    consumer: &'static str,
    ids: Vec<EventId>,
    at: Timestamp,
) -> Result<HashSet<EventId>, DatabaseError> {
    write_on!(database, |connection| connection.record_events(consumer, &ids, at))
}

async fn prune(database: &Database, before: Timestamp, limit: u32) -> Result<usize, DatabaseError> {
    write_on!(database, |connection| connection.prune_events(before, limit))
}
