//! The inbox on SQLite.

use std::collections::HashSet;

use assay_contracts::ids::EventId;
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, static_sql};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use diesel::sqlite::SqliteConnection;

/// Row by row: in SQLite a statement has no round trip, and a constant text is prepared only once.
const RECORD: &str =
    "INSERT INTO inbox (consumer, event_id, handled_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";

impl super::Connection for SqliteConnection {
    fn record_events(
        &mut self,
        consumer: &str,
        ids: &[EventId],
        now: Timestamp,
    ) -> Result<HashSet<EventId>, DatabaseError> {
        let mut new = HashSet::with_capacity(ids.len());
        for id in ids {
            let recorded = static_sql(RECORD)
                .bind::<Text, _>(consumer)
                .bind::<Text, _>(id.to_string())
                .bind::<BigInt, _>(now.as_millis())
                .execute(self)?;
            if recorded == 1 {
                new.insert(*id);
            }
        }
        Ok(new)
    }

    fn prune_events(&mut self, before: Timestamp, limit: u32) -> Result<usize, DatabaseError> {
        let deleted = diesel::sql_query(
            "DELETE FROM inbox WHERE (consumer, event_id) IN \
             (SELECT consumer, event_id FROM inbox WHERE handled_at < ? ORDER BY handled_at LIMIT ?)",
        )
        .bind::<BigInt, _>(before.as_millis())
        .bind::<BigInt, _>(i64::from(limit))
        .execute(self)?;
        Ok(deleted)
    }
}
