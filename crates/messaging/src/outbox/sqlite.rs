//! The outbox on SQLite: a single writer needs no row locks.

#[path = "statements.rs"]
mod statements;

use assay_contracts::ids::EventId;
use assay_platform::db::{DatabaseError, StoredId, static_sql};
use assay_platform::runtime::now;
use diesel::prelude::*;
use diesel::sql_types;
use diesel::sqlite::SqliteConnection;

use self::statements::outbox;
pub(super) use self::statements::*;
use super::direct_dispatch::DirectDispatch;
use super::enqueue;
use crate::envelope::OutgoingEvent;

type Connection = SqliteConnection;
/// Type of the id columns.
type Id = sql_types::Text;

/// Row by row: in SQLite a statement has no round trip, and a constant text is prepared only once.
const ENQUEUE: &str = "
    INSERT INTO outbox (id, topic, organization_id, needs_consumer, payload, created_at, next_attempt_at, claimed_until)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)";

const CLAIM: &str = "
    UPDATE outbox SET claimed_until = $1 WHERE id IN (
        SELECT id FROM outbox
        WHERE dead_at IS NULL AND next_attempt_at <= $2 AND claimed_until <= $2
        ORDER BY next_attempt_at, id LIMIT $3)
    RETURNING id, topic, organization_id, needs_consumer, payload, created_at, attempts";

impl enqueue::Connection for Connection {
    fn enqueue_events(
        &mut self,
        events: &[OutgoingEvent],
        dispatch: DirectDispatch,
    ) -> Result<(), DatabaseError> {
        let created_at = now().as_millis();
        for event in events {
            static_sql(ENQUEUE)
                .bind::<sql_types::Text, _>(event.id.to_string())
                .bind::<sql_types::Text, _>(&event.topic)
                .bind::<sql_types::Text, _>(event.organization_id.to_string())
                .bind::<sql_types::Bool, _>(event.needs_consumer)
                .bind::<sql_types::Text, _>(&event.payload)
                .bind::<sql_types::BigInt, _>(created_at)
                .bind::<sql_types::BigInt, _>(created_at)
                .bind::<sql_types::BigInt, _>(dispatch.claimed_until_millis())
                .execute(self)?;
        }
        Ok(())
    }
}

fn delete_published(connection: &mut Connection, ids: &[EventId]) -> Result<(), DatabaseError> {
    let ids = ids.iter().map(|id| StoredId::of(*id));
    diesel::delete(outbox::table.filter(outbox::id.eq_any(ids))).execute(connection)?;
    Ok(())
}
