//! Parked events on PostgreSQL: arrays in place of single rows, and row locks.

#[path = "statements.rs"]
#[expect(clippy::duplicate_mod, reason = "the same statements, compiled for both databases")]
mod statements;

use assay_platform::db::{DatabaseError, static_sql};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{self, Array};

pub(super) use self::statements::*;
use crate::envelope::OutgoingEvent;

type Connection = PgConnection;
/// Type of the id columns.
type Id = sql_types::Uuid;

/// In order, so that two consumers of the same events cannot deadlock.
const PARK: &str = "
    INSERT INTO parked (organization_id, event_id, topic, payload)
    SELECT organization_id, event_id, topic, payload
    FROM unnest($1, $2, $3, $4) AS new (organization_id, event_id, topic, payload) ORDER BY organization_id, event_id
    ON CONFLICT DO NOTHING";

/// `$2`: now. `$3`: a lease beyond this time was written by a clock that was ahead (`MAX_LEASE_MILLIS`).
const CLAIMABLE: &str = "
    SELECT organization_id, event_id, topic, payload, claims FROM parked
    WHERE organization_id = $1 AND (claimed_until <= $2 OR claimed_until > $3)
    ORDER BY event_id LIMIT $4 FOR UPDATE SKIP LOCKED";

pub(super) fn park(connection: &mut Connection, events: &[OutgoingEvent]) -> Result<(), DatabaseError> {
    static_sql(PARK)
        .bind::<Array<Id>, _>(events.iter().map(|event| event.organization_id.as_uuid()).collect::<Vec<_>>())
        .bind::<Array<Id>, _>(events.iter().map(|event| event.id.as_uuid()).collect::<Vec<_>>())
        .bind::<Array<sql_types::Text>, _>(
            events.iter().map(|event| event.topic.as_str()).collect::<Vec<_>>(),
        )
        .bind::<Array<sql_types::Text>, _>(
            events.iter().map(|event| event.payload.as_str()).collect::<Vec<_>>(),
        )
        .execute(connection)?;
    Ok(())
}
