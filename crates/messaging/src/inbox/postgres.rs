//! The inbox on PostgreSQL.

use std::collections::HashSet;

use assay_contracts::ids::EventId;
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, static_sql};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types;
use uuid::Uuid;

/// Ids in one statement: bounds its array.
const IDS_PER_STATEMENT: usize = 1_000;

/// Arrays keep the text of the statement the same for any number of events.
const RECORD: &str = "
    INSERT INTO inbox (consumer, event_id, handled_at) SELECT $1, event_id, $3 FROM unnest($2) AS new (event_id)
    ON CONFLICT DO NOTHING RETURNING event_id";

#[derive(QueryableByName)]
struct InboxRow {
    #[diesel(sql_type = sql_types::Uuid)]
    event_id: Uuid,
}

impl super::Connection for PgConnection {
    fn record_events(
        &mut self,
        consumer: &str,
        ids: &[EventId],
        now: Timestamp,
    ) -> Result<HashSet<EventId>, DatabaseError> {
        let mut new = HashSet::with_capacity(ids.len());
        for chunk in sorted(ids).chunks(IDS_PER_STATEMENT) {
            let recorded: Vec<InboxRow> = static_sql(RECORD)
                .bind::<sql_types::Text, _>(consumer)
                .bind::<sql_types::Array<sql_types::Uuid>, _>(chunk)
                .bind::<sql_types::BigInt, _>(now.as_millis())
                .load(self)?;
            new.extend(recorded.into_iter().map(|row| EventId::from(row.event_id)));
        }
        Ok(new)
    }

    fn prune_events(&mut self, before: Timestamp, limit: u32) -> Result<usize, DatabaseError> {
        let deleted = diesel::sql_query(
            "DELETE FROM inbox USING (SELECT consumer, event_id FROM inbox WHERE handled_at < $1 \
             ORDER BY handled_at LIMIT $2 FOR UPDATE SKIP LOCKED) AS old \
             WHERE inbox.consumer = old.consumer AND inbox.event_id = old.event_id",
        )
        .bind::<sql_types::BigInt, _>(before.as_millis())
        .bind::<sql_types::BigInt, _>(i64::from(limit))
        .execute(self)?;
        Ok(deleted)
    }
}

/// Sorted, so that concurrent transactions lock events in the same order and cannot deadlock.
fn sorted(ids: &[EventId]) -> Vec<Uuid> {
    let mut ids: Vec<Uuid> = ids.iter().map(EventId::as_uuid).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
