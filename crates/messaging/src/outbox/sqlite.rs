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
use super::enqueue;
use super::fast_path::FastPathClaim;
use crate::envelope::OutgoingEvent;

type Connection = SqliteConnection;
/// Type of the id columns.
type Id = sql_types::Text;

/// Row by row: in SQLite a statement has no round trip, and a constant text is prepared only once.
const ENQUEUE: &str = "
    INSERT INTO outbox (id, topic, organization_id, needs_consumer, payload, created_at, next_attempt_at, claimed_until)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)";

const ENQUEUE_RETURNED: &str = "
    INSERT INTO outbox (id, topic, organization_id, needs_consumer, payload, cut_short, created_at, next_attempt_at, claimed_until)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $7, 0) ON CONFLICT (id) DO NOTHING";

/// The longest due rows up to `$4` bytes of payload, at least one. `octet_length` does not read the payload.
/// `$1`: the end of the lease. `$2`: now. `$3`: most rows. `total = bytes` is true of the first row only.
macro_rules! claim {
    ($condition:literal) => {
        concat!(
            "UPDATE outbox SET claimed_until = $1 WHERE id IN (
                SELECT id FROM (
                    SELECT id, bytes, sum(bytes) OVER (ORDER BY next_attempt_at, id) AS total FROM (
                        SELECT id, next_attempt_at, octet_length(payload) AS bytes FROM outbox
                        WHERE dead_at IS NULL AND next_attempt_at <= $2 AND claimed_until <= $2 AND ",
            $condition,
            "           ORDER BY next_attempt_at, id LIMIT $3))
                WHERE total <= $4 OR total = bytes)
            RETURNING id, topic, organization_id, needs_consumer, payload, created_at, attempts, cut_short"
        )
    };
}
const CLAIM: &str = claim!("cut_short < 2");
const CLAIM_ISOLATED: &str = claim!("cut_short >= 2");

impl enqueue::Connection for Connection {
    fn enqueue_events(
        &mut self,
        events: &[OutgoingEvent],
        claim: FastPathClaim,
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
                .bind::<sql_types::BigInt, _>(claim.claimed_until_millis())
                .execute(self)?;
        }
        Ok(())
    }

    fn enqueue_returned_events(&mut self, events: &[OutgoingEvent]) -> Result<(), DatabaseError> {
        let created_at = now().as_millis();
        for event in events {
            static_sql(ENQUEUE_RETURNED)
                .bind::<sql_types::Text, _>(event.id.to_string())
                .bind::<sql_types::Text, _>(&event.topic)
                .bind::<sql_types::Text, _>(event.organization_id.to_string())
                .bind::<sql_types::Bool, _>(event.needs_consumer)
                .bind::<sql_types::Text, _>(&event.payload)
                .bind::<sql_types::Integer, _>(event.cut_short_column())
                .bind::<sql_types::BigInt, _>(created_at)
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
