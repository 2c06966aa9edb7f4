//! The outbox on PostgreSQL. Claiming and recording results are short transactions of their own: none is open while events
//! are published.

use assay_contracts::ids::{EventId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, static_sql};
use assay_platform::runtime::now;
use diesel::dsl::{count_star, min};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{self, Array};
use uuid::Uuid;

use super::{
    Claimed, DeadEvent, DirectDispatch, LEASE_MILLIS, MAX_SCHEDULE_MILLIS, OutboxStatus, PublishResults,
    ROWS_PER_STATEMENT, count, unsigned,
};
use crate::envelope::OutgoingEvent;

diesel::table! {
    outbox (id) {
        id -> Uuid,
        topic -> Text,
        organization_id -> Uuid,
        needs_consumer -> Bool,
        payload -> Text,
        created_at -> BigInt,
        claimed_until -> BigInt,
        attempts -> Integer,
        next_attempt_at -> BigInt,
        dead_at -> Nullable<BigInt>,
        last_error -> Nullable<Text>,
    }
}

/// Arrays keep the text of the statement the same for any number of rows.
const ENQUEUE: &str = "
    INSERT INTO outbox (id, topic, organization_id, needs_consumer, payload, created_at, next_attempt_at, claimed_until)
    SELECT id, topic, organization_id, needs_consumer, payload, $6, $6, $7
    FROM unnest($1, $2, $3, $4, $5) AS new (id, topic, organization_id, needs_consumer, payload)";

/// An array and not `IN (SELECT …)`, which the planner may evaluate more than once, with other rows each time.
const CLAIM: &str = "
    UPDATE outbox SET claimed_until = $1 WHERE id = ANY (ARRAY(
        SELECT id FROM outbox
        WHERE dead_at IS NULL AND next_attempt_at <= $2 AND claimed_until <= $2
        ORDER BY next_attempt_at, id LIMIT $3 FOR UPDATE SKIP LOCKED))
    RETURNING id, topic, organization_id, needs_consumer, payload, created_at, attempts";

/// Does not wait for the WAL flush: rows that a crash of the server restores are published again, and the inbox recognises
/// them.
const DELETE_PUBLISHED: &str = "
    DELETE FROM outbox WHERE id = ANY ($1) AND (SELECT set_config('synchronous_commit', 'off', true)) = 'off'";

impl super::Connection for PgConnection {
    fn enqueue_events(
        &mut self,
        events: &[OutgoingEvent],
        dispatch: DirectDispatch,
    ) -> Result<(), DatabaseError> {
        enqueue(self, events, dispatch)
    }
}

fn enqueue(
    connection: &mut PgConnection,
    events: &[OutgoingEvent],
    dispatch: DirectDispatch,
) -> Result<(), DatabaseError> {
    let created_at = now().as_millis();
    for events in events.chunks(ROWS_PER_STATEMENT) {
        static_sql(ENQUEUE)
            .bind::<Array<sql_types::Uuid>, _>(column(events, |event| event.id.as_uuid()))
            .bind::<Array<sql_types::Text>, _>(column(events, |event| event.topic.as_str()))
            .bind::<Array<sql_types::Uuid>, _>(column(events, |event| event.organization_id.as_uuid()))
            .bind::<Array<sql_types::Bool>, _>(column(events, |event| event.needs_consumer))
            .bind::<Array<sql_types::Text>, _>(column(events, |event| event.payload.as_str()))
            .bind::<sql_types::BigInt, _>(created_at)
            .bind::<sql_types::BigInt, _>(dispatch.claimed_until_millis())
            .execute(connection)?;
    }
    Ok(())
}

fn column<'e, T>(events: &'e [OutgoingEvent], of: impl Fn(&'e OutgoingEvent) -> T) -> Vec<T> {
    events.iter().map(of).collect()
}

pub(super) fn claim(
    connection: &mut PgConnection,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Claimed>, DatabaseError> {
    let rows: Vec<ClaimedRow> = static_sql(CLAIM)
        .bind::<sql_types::BigInt, _>(now.plus_millis(LEASE_MILLIS).as_millis())
        .bind::<sql_types::BigInt, _>(now.as_millis())
        .bind::<sql_types::BigInt, _>(i64::from(limit))
        .get_results(connection)?;
    let mut claimed: Vec<Claimed> = rows.into_iter().map(Claimed::from).collect();
    claimed.sort_by_key(|row| row.event.id);
    Ok(claimed)
}

pub(super) fn renew(
    connection: &mut PgConnection,
    ids: &[EventId],
    now: Timestamp,
) -> Result<(), DatabaseError> {
    diesel::update(outbox::table.filter(outbox::id.eq_any(uuids(ids))))
        .set(outbox::claimed_until.eq(now.plus_millis(LEASE_MILLIS).as_millis()))
        .execute(connection)?;
    Ok(())
}

pub(super) fn record_results(
    connection: &mut PgConnection,
    results: &PublishResults,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    if results.all_published() {
        return delete_published(connection, &results.published);
    }
    connection.transaction(|connection| {
        delete_published(connection, &results.published)?;
        diesel::update(outbox::table.filter(outbox::id.eq_any(uuids(&results.released))))
            .set(outbox::claimed_until.eq(0))
            .execute(connection)?;
        for row in &results.postponed {
            diesel::update(outbox::table.filter(outbox::id.eq(row.id.as_uuid())))
                .set((
                    outbox::claimed_until.eq(0),
                    outbox::attempts.eq(outbox::attempts + i32::from(row.counts_attempt)),
                    outbox::next_attempt_at.eq(row.next_attempt_at.as_millis()),
                    outbox::last_error.eq(&row.reason),
                ))
                .execute(connection)?;
        }
        for (id, reason) in &results.dead {
            diesel::update(outbox::table.filter(outbox::id.eq(id.as_uuid())))
                .set((
                    outbox::claimed_until.eq(0),
                    outbox::attempts.eq(outbox::attempts + 1),
                    outbox::dead_at.eq(now.as_millis()),
                    outbox::last_error.eq(reason),
                ))
                .execute(connection)?;
        }
        Ok(())
    })
}

fn delete_published(connection: &mut PgConnection, ids: &[EventId]) -> Result<(), DatabaseError> {
    static_sql(DELETE_PUBLISHED).bind::<Array<sql_types::Uuid>, _>(uuids(ids)).execute(connection)?;
    Ok(())
}

pub(super) fn release_all_claims(connection: &mut PgConnection) -> Result<(), DatabaseError> {
    diesel::update(outbox::table.filter(outbox::claimed_until.gt(0)))
        .set(outbox::claimed_until.eq(0))
        .execute(connection)?;
    Ok(())
}

pub(super) fn repair_clock_skew(connection: &mut PgConnection, now: Timestamp) -> Result<(), DatabaseError> {
    let too_late = now.plus_millis(MAX_SCHEDULE_MILLIS).as_millis();
    diesel::update(outbox::table)
        .filter(outbox::dead_at.is_null())
        .filter(outbox::next_attempt_at.gt(too_late).or(outbox::claimed_until.gt(too_late)))
        .set((outbox::next_attempt_at.eq(now.as_millis()), outbox::claimed_until.eq(0)))
        .execute(connection)?;
    Ok(())
}

pub(super) fn oldest_pending(connection: &mut PgConnection) -> Result<Option<i64>, DatabaseError> {
    let pending = outbox::table.filter(outbox::dead_at.is_null());
    Ok(pending.select(min(outbox::created_at)).first(connection)?)
}

pub(super) fn backlog(
    connection: &mut PgConnection,
    limit: i64,
) -> Result<(Option<i64>, i64), DatabaseError> {
    let oldest = oldest_pending(connection)?;
    // The common case.
    if oldest.is_none() {
        return Ok((None, 0));
    }
    let counted: PendingRow = diesel::sql_query(
        "SELECT count(*) AS events FROM (SELECT 1 FROM outbox WHERE dead_at IS NULL LIMIT $1) AS pending",
    )
    .bind::<sql_types::BigInt, _>(limit)
    .get_result(connection)?;
    Ok((oldest, counted.events))
}

pub(super) fn status(connection: &mut PgConnection) -> Result<OutboxStatus, DatabaseError> {
    let pending = outbox::table.filter(outbox::dead_at.is_null()).select(count_star()).first(connection)?;
    let dead = outbox::table.filter(outbox::dead_at.is_not_null()).select(count_star()).first(connection)?;
    let last_error = outbox::table
        .filter(outbox::dead_at.is_null())
        .filter(outbox::last_error.is_not_null())
        .order(outbox::created_at)
        .select(outbox::last_error)
        .first(connection)
        .optional()?
        .flatten();
    let oldest_pending = oldest_pending(connection)?.map(Timestamp::saturating_from_millis);
    Ok(OutboxStatus { pending: count(pending), oldest_pending, last_error, dead: count(dead) })
}

pub(super) fn dead_events(
    connection: &mut PgConnection,
    limit: u32,
) -> Result<Vec<DeadEvent>, DatabaseError> {
    let rows: Vec<DeadRow> = outbox::table
        .filter(outbox::dead_at.is_not_null())
        .order((outbox::dead_at, outbox::id))
        .limit(i64::from(limit))
        .select(DeadRow::as_select())
        .load(connection)?;
    Ok(rows.into_iter().map(DeadEvent::from).collect())
}

pub(super) fn retry_dead(
    connection: &mut PgConnection,
    id: EventId,
    now: Timestamp,
) -> Result<bool, DatabaseError> {
    let dead = outbox::table.filter(outbox::id.eq(id.as_uuid())).filter(outbox::dead_at.is_not_null());
    let changed = diesel::update(dead)
        .set((
            outbox::dead_at.eq(None::<i64>),
            outbox::attempts.eq(0),
            outbox::claimed_until.eq(0),
            outbox::next_attempt_at.eq(now.as_millis()),
        ))
        .execute(connection)?;
    Ok(changed > 0)
}

pub(super) fn drop_dead(connection: &mut PgConnection, id: EventId) -> Result<bool, DatabaseError> {
    let dead = outbox::table.filter(outbox::id.eq(id.as_uuid())).filter(outbox::dead_at.is_not_null());
    Ok(diesel::delete(dead).execute(connection)? > 0)
}

#[derive(QueryableByName)]
struct PendingRow {
    #[diesel(sql_type = sql_types::BigInt)]
    events: i64,
}

#[derive(QueryableByName)]
#[diesel(table_name = outbox)]
struct ClaimedRow {
    id: Uuid,
    topic: String,
    organization_id: Uuid,
    needs_consumer: bool,
    payload: String,
    created_at: i64,
    attempts: i32,
}

impl From<ClaimedRow> for Claimed {
    fn from(row: ClaimedRow) -> Self {
        Self {
            event: OutgoingEvent {
                id: row.id.into(),
                topic: row.topic,
                organization_id: row.organization_id.into(),
                needs_consumer: row.needs_consumer,
                payload: row.payload,
                attempt: unsigned(row.attempts) + 1,
            },
            created_at: Timestamp::saturating_from_millis(row.created_at),
        }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = outbox)]
struct DeadRow {
    id: Uuid,
    topic: String,
    organization_id: Uuid,
    created_at: i64,
    dead_at: Option<i64>,
    attempts: i32,
    last_error: Option<String>,
    payload: String,
}

impl From<DeadRow> for DeadEvent {
    fn from(row: DeadRow) -> Self {
        Self {
            id: EventId::from(row.id),
            topic: row.topic,
            organization_id: OrganizationId::from(row.organization_id),
            created_at: Timestamp::saturating_from_millis(row.created_at),
            dead_at: Timestamp::saturating_from_millis(row.dead_at.unwrap_or_default()),
            attempts: unsigned(row.attempts),
            last_error: row.last_error.unwrap_or_default(),
            payload: row.payload,
        }
    }
}

fn uuids(ids: &[EventId]) -> Vec<Uuid> {
    ids.iter().map(EventId::as_uuid).collect()
}
