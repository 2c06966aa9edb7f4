//! Parked events on SQLite: a single writer needs no row locks.

#[path = "statements.rs"]
mod statements;

use assay_platform::db::{DatabaseError, StoredId, static_sql};
use diesel::prelude::*;
use diesel::sql_types;
use diesel::sqlite::SqliteConnection;

pub(super) use self::statements::*;
use crate::envelope::OutgoingEvent;

type Connection = SqliteConnection;
/// Type of the id columns.
type Id = sql_types::Text;

/// Row by row: in SQLite a statement has no round trip, and a constant text is prepared only once.
const PARK: &str = "
    INSERT INTO parked (organization_id, event_id, topic, payload) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";

/// `$2`: now. `$3`: a lease beyond this time was written by a clock that was ahead (`MAX_LEASE_MILLIS`).
const CLAIMABLE: &str = "
    SELECT organization_id, event_id, topic, payload, claims FROM parked
    WHERE organization_id = $1 AND (claimed_until <= $2 OR claimed_until > $3)
    ORDER BY event_id LIMIT $4";

pub(super) fn park(connection: &mut Connection, events: &[OutgoingEvent]) -> Result<(), DatabaseError> {
    for event in events {
        static_sql(PARK)
            .bind::<Id, _>(StoredId::of(event.organization_id))
            .bind::<Id, _>(StoredId::of(event.id))
            .bind::<sql_types::Text, _>(&event.topic)
            .bind::<sql_types::Text, _>(&event.payload)
            .execute(connection)?;
    }
    Ok(())
}
