//! What an inbox promises, on both databases.

use std::collections::HashSet;

use anyhow::Result;
use assay_contracts::ids::EventId;
use assay_contracts::time::Timestamp;
use assay_platform::db::{Database, DatabaseError, Migrations};
use assay_platform::runtime::{new_id, now};
use diesel::Connection;
use futures_util::future::try_join;

use super::{forget_postgres, forget_sqlite, record_postgres, record_sqlite};
use crate::conformance::on_both_databases;
use crate::test_databases;

static MIGRATIONS: [Migrations; 1] = [crate::MIGRATIONS];

on_both_databases!(
    an_event_is_new_once_for_each_consumer,
    only_the_new_ones_of_several_events_are_answered,
    an_event_named_twice_is_answered_once,
    more_events_than_fit_into_one_statement_are_recorded,
    an_event_whose_work_was_rolled_back_is_new_again,
    of_concurrent_transactions_one_gets_the_event,
    old_events_are_forgotten_and_younger_ones_are_not,
);

async fn an_event_is_new_once_for_each_consumer(database: Database) -> Result<()> {
    let id = new_id();
    assert_eq!(record(&database, "scorer", vec![id]).await?, HashSet::from([id]));
    assert_eq!(record(&database, "scorer", vec![id]).await?, HashSet::new());
    assert_eq!(record(&database, "exporter", vec![id]).await?, HashSet::from([id]));
    Ok(())
}

async fn only_the_new_ones_of_several_events_are_answered(database: Database) -> Result<()> {
    let (known, new, other) = (new_id(), new_id(), new_id());
    record(&database, "scorer", vec![known]).await?;
    assert_eq!(record(&database, "scorer", vec![new, known, other]).await?, HashSet::from([new, other]));
    Ok(())
}

async fn an_event_named_twice_is_answered_once(database: Database) -> Result<()> {
    let id = new_id();
    assert_eq!(record(&database, "scorer", vec![id, id]).await?, HashSet::from([id]));
    Ok(())
}

async fn more_events_than_fit_into_one_statement_are_recorded(database: Database) -> Result<()> {
    let ids: Vec<EventId> = (0..2_500).map(|_| new_id()).collect();
    assert_eq!(record(&database, "scorer", ids.clone()).await?.len(), ids.len());
    assert_eq!(record(&database, "scorer", ids).await?.len(), 0);
    Ok(())
}

async fn an_event_whose_work_was_rolled_back_is_new_again(database: Database) -> Result<()> {
    let id: EventId = new_id();
    let abort = || DatabaseError::Corrupt("roll back".to_owned());
    let aborted: Result<(), DatabaseError> = match &database {
        Database::Postgres(postgres) => {
            postgres
                .run(move |connection| {
                    connection.transaction(|connection| {
                        record_postgres(connection, "scorer", &[id], now())?;
                        Err(abort())
                    })
                })
                .await
        }
        Database::Sqlite(sqlite) => {
            sqlite
                .write(move |connection| {
                    record_sqlite(connection, "scorer", &[id], now())?;
                    Err(abort())
                })
                .await
        }
    };
    assert!(aborted.is_err());
    assert_eq!(record(&database, "scorer", vec![id]).await?, HashSet::from([id]));
    Ok(())
}

async fn of_concurrent_transactions_one_gets_the_event(database: Database) -> Result<()> {
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

async fn old_events_are_forgotten_and_younger_ones_are_not(database: Database) -> Result<()> {
    let old: Vec<EventId> = (0..5).map(|_| new_id()).collect();
    let young: EventId = new_id();
    record_at(&database, "scorer", old.clone(), now().plus_millis(-60_000)).await?;
    record(&database, "scorer", vec![young]).await?;
    let limit = now().plus_millis(-30_000);
    assert_eq!(forget(&database, limit, 3).await?, 3);
    assert_eq!(forget(&database, limit, 3).await?, 2);
    assert_eq!(forget(&database, limit, 3).await?, 0);
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
    match database {
        Database::Postgres(postgres) => {
            postgres
                .run(move |connection| {
                    connection.transaction(|connection| record_postgres(connection, consumer, &ids, at))
                })
                .await
        }
        Database::Sqlite(sqlite) => {
            sqlite.write(move |connection| record_sqlite(connection, consumer, &ids, at)).await
        }
    }
}

async fn forget(database: &Database, before: Timestamp, limit: u32) -> Result<usize, DatabaseError> {
    match database {
        Database::Postgres(postgres) => {
            postgres.run(move |connection| forget_postgres(connection, before, limit)).await
        }
        Database::Sqlite(sqlite) => {
            sqlite.write(move |connection| forget_sqlite(connection, before, limit)).await
        }
    }
}
