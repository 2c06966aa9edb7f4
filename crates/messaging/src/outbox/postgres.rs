//! The outbox on PostgreSQL: arrays in place of single rows, row locks, and deleting without waiting for the WAL flush.

#[path = "statements.rs"]
#[expect(clippy::duplicate_mod, reason = "the same statements, compiled for both databases")]
mod statements;

use assay_contracts::ids::EventId;
use assay_platform::db::{DatabaseError, static_sql};
use assay_platform::runtime::now;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{self, Array};
use uuid::Uuid;

pub(super) use self::statements::*;
use super::enqueue;
use super::fast_path::FastPathClaim;
use crate::envelope::OutgoingEvent;

type Connection = PgConnection;
/// Type of the id columns.
type Id = sql_types::Uuid;

/// Rows in one statement: bounds its arrays.
const ROWS_PER_STATEMENT: usize = 1_000;

/// Arrays keep the text of the statement the same for any number of rows.
const ENQUEUE: &str = "
    INSERT INTO outbox (id, topic, organization_id, needs_consumer, payload, created_at, next_attempt_at, claimed_until)
    SELECT id, topic, organization_id, needs_consumer, payload, $6, $6, $7
    FROM unnest($1, $2, $3, $4, $5) AS new (id, topic, organization_id, needs_consumer, payload)";

const ENQUEUE_RETURNED: &str = "
    INSERT INTO outbox (id, topic, organization_id, needs_consumer, payload, cut_short, created_at, next_attempt_at, claimed_until)
    SELECT id, topic, organization_id, needs_consumer, payload, cut_short, $7, $7, 0
    FROM unnest($1, $2, $3, $4, $5, $6) AS new (id, topic, organization_id, needs_consumer, payload, cut_short) ORDER BY id
    ON CONFLICT (id) DO NOTHING";

/// The longest due rows up to `$4` bytes of payload, at least one. `octet_length` does not read a payload that is stored
/// outside its row. An array and not `IN (SELECT …)`, which the planner may evaluate more than once, with other rows each time.
/// `$1`: the end of the lease. `$2`: now. `$3`: most rows. `total = bytes` is true of the first row only.
macro_rules! claim {
    ($condition:literal) => {
        concat!(
            "WITH due AS MATERIALIZED (
                SELECT id, next_attempt_at, octet_length(payload) AS bytes FROM outbox
                WHERE dead_at IS NULL AND next_attempt_at <= $2 AND claimed_until <= $2 AND ",
            $condition,
            " ORDER BY next_attempt_at, id LIMIT $3 FOR UPDATE SKIP LOCKED),
            summed AS (SELECT id, bytes, sum(bytes) OVER (ORDER BY next_attempt_at, id) AS total FROM due)
            UPDATE outbox SET claimed_until = $1
            WHERE id = ANY (ARRAY(SELECT id FROM summed WHERE total <= $4 OR total = bytes))
            RETURNING id, topic, organization_id, needs_consumer, payload, created_at, attempts, cut_short"
        )
    };
}
const CLAIM: &str = claim!("cut_short < 2");
const CLAIM_ISOLATED: &str = claim!("cut_short >= 2");

/// Does not wait for the WAL flush, which `set_config` switches off for this transaction: rows that a crash of the server restores
/// are published again, and the inbox recognises them.
const DELETE_PUBLISHED: &str = "
    DELETE FROM outbox WHERE id = ANY ($1) AND (SELECT set_config('synchronous_commit', 'off', true)) = 'off'";

impl enqueue::Connection for Connection {
    fn enqueue_events(
        &mut self,
        events: &[OutgoingEvent],
        claim: FastPathClaim,
    ) -> Result<(), DatabaseError> {
        let created_at = now().as_millis();
        for chunk in events.chunks(ROWS_PER_STATEMENT) {
            static_sql(ENQUEUE)
                .bind::<Array<sql_types::Uuid>, _>(column(chunk, |event| event.id.as_uuid()))
                .bind::<Array<sql_types::Text>, _>(column(chunk, |event| event.topic.as_str()))
                .bind::<Array<sql_types::Uuid>, _>(column(chunk, |event| event.organization_id.as_uuid()))
                .bind::<Array<sql_types::Bool>, _>(column(chunk, |event| event.needs_consumer))
                .bind::<Array<sql_types::Text>, _>(column(chunk, |event| event.payload.as_str()))
                .bind::<sql_types::BigInt, _>(created_at)
                .bind::<sql_types::BigInt, _>(claim.claimed_until_millis())
                .execute(self)?;
        }
        Ok(())
    }

    fn enqueue_returned_events(&mut self, events: &[OutgoingEvent]) -> Result<(), DatabaseError> {
        let created_at = now().as_millis();
        for chunk in events.chunks(ROWS_PER_STATEMENT) {
            static_sql(ENQUEUE_RETURNED)
                .bind::<Array<sql_types::Uuid>, _>(column(chunk, |event| event.id.as_uuid()))
                .bind::<Array<sql_types::Text>, _>(column(chunk, |event| event.topic.as_str()))
                .bind::<Array<sql_types::Uuid>, _>(column(chunk, |event| event.organization_id.as_uuid()))
                .bind::<Array<sql_types::Bool>, _>(column(chunk, |event| event.needs_consumer))
                .bind::<Array<sql_types::Text>, _>(column(chunk, |event| event.payload.as_str()))
                .bind::<Array<sql_types::Integer>, _>(column(chunk, OutgoingEvent::cut_short_column))
                .bind::<sql_types::BigInt, _>(created_at)
                .execute(self)?;
        }
        Ok(())
    }
}

fn column<'e, T>(events: &'e [OutgoingEvent], value: impl Fn(&'e OutgoingEvent) -> T) -> Vec<T> {
    events.iter().map(value).collect()
}

fn delete_published(connection: &mut Connection, ids: &[EventId]) -> Result<(), DatabaseError> {
    let ids: Vec<Uuid> = ids.iter().map(EventId::as_uuid).collect();
    static_sql(DELETE_PUBLISHED).bind::<Array<sql_types::Uuid>, _>(ids).execute(connection)?;
    Ok(())
}
