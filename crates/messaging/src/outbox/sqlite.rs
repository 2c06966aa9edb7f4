//! The outbox on SQLite: a single writer needs no row locks.

use std::str::FromStr;

use assay_contracts::ids::EventId;
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, static_sql};
use assay_platform::runtime::now;
use diesel::dsl::{count_star, min};
use diesel::prelude::*;
use diesel::sql_types;
use diesel::sqlite::SqliteConnection;

use super::{
    Claimed, DeadEvent, DirectDispatch, LEASE_MILLIS, MAX_SCHEDULE_MILLIS, OutboxStatus, PublishResults,
    count, unsigned,
};
use crate::envelope::OutgoingEvent;

diesel::table! {
    outbox (id) {
        id -> Text,
        topic -> Text,
        organization_id -> Text,
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

/// Row by row: in SQLite a statement has no round trip, and a constant text is prepared only once.
const ENQUEUE: &str = "
    INSERT INTO outbox (id, topic, organization_id, needs_consumer, payload, created_at, next_attempt_at, claimed_until)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)";

impl super::Connection for SqliteConnection {
    fn enqueue_events(
        &mut self,
        events: &[OutgoingEvent],
        dispatch: DirectDispatch,
    ) -> Result<(), DatabaseError> {
        enqueue(self, events, dispatch)
    }
}

fn enqueue(
    connection: &mut SqliteConnection,
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
            .execute(connection)?;
    }
    Ok(())
}

pub(super) fn claim(
    connection: &mut SqliteConnection,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Claimed>, DatabaseError> {
    let rows: Vec<ClaimedRow> = diesel::sql_query(
        "UPDATE outbox SET claimed_until = ?1 WHERE id IN ( \
             SELECT id FROM outbox \
             WHERE dead_at IS NULL AND next_attempt_at <= ?2 AND claimed_until <= ?2 \
             ORDER BY next_attempt_at, id LIMIT ?3) \
         RETURNING id, topic, organization_id, needs_consumer, payload, created_at, attempts",
    )
    .bind::<sql_types::BigInt, _>(now.plus_millis(LEASE_MILLIS).as_millis())
    .bind::<sql_types::BigInt, _>(now.as_millis())
    .bind::<sql_types::BigInt, _>(i64::from(limit))
    .get_results(connection)?;
    let mut claimed: Vec<Claimed> = rows.into_iter().map(Claimed::try_from).collect::<Result<_, _>>()?;
    claimed.sort_by_key(|row| row.event.id);
    Ok(claimed)
}

pub(super) fn renew(
    connection: &mut SqliteConnection,
    ids: &[EventId],
    now: Timestamp,
) -> Result<(), DatabaseError> {
    diesel::update(outbox::table.filter(outbox::id.eq_any(texts(ids))))
        .set(outbox::claimed_until.eq(now.plus_millis(LEASE_MILLIS).as_millis()))
        .execute(connection)?;
    Ok(())
}

pub(super) fn record_results(
    connection: &mut SqliteConnection,
    results: &PublishResults,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    diesel::delete(outbox::table.filter(outbox::id.eq_any(texts(&results.published)))).execute(connection)?;
    diesel::update(outbox::table.filter(outbox::id.eq_any(texts(&results.released))))
        .set(outbox::claimed_until.eq(0))
        .execute(connection)?;
    for row in &results.postponed {
        diesel::update(outbox::table.filter(outbox::id.eq(row.id.to_string())))
            .set((
                outbox::claimed_until.eq(0),
                outbox::attempts.eq(outbox::attempts + i32::from(row.counts_attempt)),
                outbox::next_attempt_at.eq(row.next_attempt_at.as_millis()),
                outbox::last_error.eq(&row.reason),
            ))
            .execute(connection)?;
    }
    for (id, reason) in &results.dead {
        diesel::update(outbox::table.filter(outbox::id.eq(id.to_string())))
            .set((
                outbox::claimed_until.eq(0),
                outbox::attempts.eq(outbox::attempts + 1),
                outbox::dead_at.eq(now.as_millis()),
                outbox::last_error.eq(reason),
            ))
            .execute(connection)?;
    }
    Ok(())
}

pub(super) fn release_all_claims(connection: &mut SqliteConnection) -> Result<(), DatabaseError> {
    diesel::update(outbox::table.filter(outbox::claimed_until.gt(0)))
        .set(outbox::claimed_until.eq(0))
        .execute(connection)?;
    Ok(())
}

pub(super) fn repair_clock_skew(
    connection: &mut SqliteConnection,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let too_late = now.plus_millis(MAX_SCHEDULE_MILLIS).as_millis();
    diesel::update(outbox::table)
        .filter(outbox::dead_at.is_null())
        .filter(outbox::next_attempt_at.gt(too_late).or(outbox::claimed_until.gt(too_late)))
        .set((outbox::next_attempt_at.eq(now.as_millis()), outbox::claimed_until.eq(0)))
        .execute(connection)?;
    Ok(())
}

pub(super) fn oldest_pending(connection: &mut SqliteConnection) -> Result<Option<i64>, DatabaseError> {
    let pending = outbox::table.filter(outbox::dead_at.is_null());
    Ok(pending.select(min(outbox::created_at)).first(connection)?)
}

pub(super) fn backlog(
    connection: &mut SqliteConnection,
    limit: i64,
) -> Result<(Option<i64>, i64), DatabaseError> {
    let oldest = oldest_pending(connection)?;
    // The common case.
    if oldest.is_none() {
        return Ok((None, 0));
    }
    let counted: PendingRow = diesel::sql_query(
        "SELECT count(*) AS events FROM (SELECT 1 FROM outbox WHERE dead_at IS NULL LIMIT ?1) AS pending",
    )
    .bind::<sql_types::BigInt, _>(limit)
    .get_result(connection)?;
    Ok((oldest, counted.events))
}

pub(super) fn status(connection: &mut SqliteConnection) -> Result<OutboxStatus, DatabaseError> {
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
    connection: &mut SqliteConnection,
    limit: u32,
) -> Result<Vec<DeadEvent>, DatabaseError> {
    let rows: Vec<DeadRow> = outbox::table
        .filter(outbox::dead_at.is_not_null())
        .order((outbox::dead_at, outbox::id))
        .limit(i64::from(limit))
        .select(DeadRow::as_select())
        .load(connection)?;
    rows.into_iter().map(DeadEvent::try_from).collect()
}

pub(super) fn retry_dead(
    connection: &mut SqliteConnection,
    id: EventId,
    now: Timestamp,
) -> Result<bool, DatabaseError> {
    let dead = outbox::table.filter(outbox::id.eq(id.to_string())).filter(outbox::dead_at.is_not_null());
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

pub(super) fn drop_dead(connection: &mut SqliteConnection, id: EventId) -> Result<bool, DatabaseError> {
    let dead = outbox::table.filter(outbox::id.eq(id.to_string())).filter(outbox::dead_at.is_not_null());
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
    id: String,
    topic: String,
    organization_id: String,
    needs_consumer: bool,
    payload: String,
    created_at: i64,
    attempts: i32,
}

impl TryFrom<ClaimedRow> for Claimed {
    type Error = DatabaseError;

    fn try_from(row: ClaimedRow) -> Result<Self, DatabaseError> {
        Ok(Self {
            event: OutgoingEvent {
                id: parse(&row.id)?,
                topic: row.topic,
                organization_id: parse(&row.organization_id)?,
                needs_consumer: row.needs_consumer,
                payload: row.payload,
                attempt: unsigned(row.attempts) + 1,
            },
            created_at: Timestamp::saturating_from_millis(row.created_at),
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = outbox)]
struct DeadRow {
    id: String,
    topic: String,
    organization_id: String,
    created_at: i64,
    dead_at: Option<i64>,
    attempts: i32,
    last_error: Option<String>,
    payload: String,
}

impl TryFrom<DeadRow> for DeadEvent {
    type Error = DatabaseError;

    fn try_from(row: DeadRow) -> Result<Self, DatabaseError> {
        Ok(Self {
            id: parse(&row.id)?,
            topic: row.topic,
            organization_id: parse(&row.organization_id)?,
            created_at: Timestamp::saturating_from_millis(row.created_at),
            dead_at: Timestamp::saturating_from_millis(row.dead_at.unwrap_or_default()),
            attempts: unsigned(row.attempts),
            last_error: row.last_error.unwrap_or_default(),
            payload: row.payload,
        })
    }
}

fn texts(ids: &[EventId]) -> Vec<String> {
    ids.iter().map(EventId::to_string).collect()
}

fn parse<T: FromStr>(id: &str) -> Result<T, DatabaseError> {
    id.parse().map_err(|_| DatabaseError::Corrupt(format!("outbox holds {id:?} where an id belongs")))
}
