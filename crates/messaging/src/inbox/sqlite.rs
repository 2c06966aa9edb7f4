//! The inbox on SQLite.

use std::collections::HashSet;

use assay_contracts::ids::EventId;
use assay_contracts::time::Timestamp;
use assay_platform::db::DatabaseError;
use diesel::prelude::*;
use diesel::sqlite::SqliteConnection;

use super::IDS_PER_STATEMENT;

diesel::table! {
    inbox (consumer, event_id) {
        consumer -> Text,
        event_id -> Text,
        handled_at -> BigInt,
    }
}

/// As [`super::record_postgres`].
///
/// # Errors
/// When the database refuses; the caller's transaction must be rolled back.
pub fn record_sqlite(
    connection: &mut SqliteConnection,
    consumer: &str,
    ids: &[EventId],
    now: Timestamp,
) -> Result<HashSet<EventId>, DatabaseError> {
    let mut new = HashSet::with_capacity(ids.len());
    for ids in ids.chunks(IDS_PER_STATEMENT) {
        let rows: Vec<_> = ids
            .iter()
            .map(|id| {
                (
                    inbox::consumer.eq(consumer),
                    inbox::event_id.eq(id.to_string()),
                    inbox::handled_at.eq(now.as_millis()),
                )
            })
            .collect();
        let recorded: Vec<String> = diesel::insert_into(inbox::table)
            .values(rows)
            .on_conflict_do_nothing()
            .returning(inbox::event_id)
            .get_results(connection)?;
        for id in recorded {
            new.insert(id.parse().map_err(|_| DatabaseError::Corrupt(format!("inbox event id {id:?}")))?);
        }
    }
    Ok(new)
}

/// As [`super::forget_postgres`].
///
/// # Errors
/// When the database refuses.
pub fn forget_sqlite(
    connection: &mut SqliteConnection,
    before: Timestamp,
    limit: u32,
) -> Result<usize, DatabaseError> {
    let forgotten = diesel::sql_query(
        "DELETE FROM inbox WHERE (consumer, event_id) IN \
         (SELECT consumer, event_id FROM inbox WHERE handled_at < ? ORDER BY handled_at LIMIT ?)",
    )
    .bind::<diesel::sql_types::BigInt, _>(before.as_millis())
    .bind::<diesel::sql_types::BigInt, _>(i64::from(limit))
    .execute(connection)?;
    Ok(forgotten)
}
