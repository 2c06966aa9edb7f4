//! The statements of the outbox, compiled for both databases. Claiming and recording results are separate, short
//! transactions: none is open while events are published.

use assay_contracts::ids::{EventId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, StoredId, static_sql};
use diesel::Connection as _;
use diesel::dsl::{count_star, min};
use diesel::prelude::*;
use diesel::sql_types::BigInt;

use super::{CLAIM, CLAIM_ISOLATED, Connection, delete_published};
use crate::bus::cut_short;
use crate::envelope::OutgoingEvent;
use crate::outbox::rows::{
    BatchLimit, ClaimedEvent, DeadEvent, IsolatedClaim, LEASE_MILLIS, MAX_SCHEDULE_MILLIS, OutboxStatus,
    PublishResults,
};

/// The statements and the index contain this number as a literal.
const ISOLATION_THRESHOLD: i32 = cut_short::ISOLATION_THRESHOLD as i32;
const _: () = assert!(ISOLATION_THRESHOLD == 2);

diesel::table! {
    use super::super::Id;
    use diesel::sql_types::*;

    outbox (id) {
        id -> Id,
        topic -> Text,
        organization_id -> Id,
        needs_consumer -> Bool,
        payload -> Text,
        created_at -> BigInt,
        claimed_until -> BigInt,
        attempts -> Integer,
        next_attempt_at -> BigInt,
        dead_at -> Nullable<BigInt>,
        last_error -> Nullable<Text>,
        cut_short -> Integer,
    }
}

/// A row is isolated after the second end of the process. Only its own event can cause further ends: it is delayed by 10 s after
/// the third end, and by 10 s more after each further one. The expressions read `cut_short` as it was before the update.
const RELEASE_ALL_CLAIMS: &str = "
    UPDATE outbox SET claimed_until = 0, cut_short = cut_short + 1,
        next_attempt_at = CASE WHEN cut_short < 2 THEN next_attempt_at ELSE $1 + 10000 * (cut_short - 1) END
    WHERE claimed_until > 0";

/// A large organization has nine tenths of its share, which is half of what may be pending (`backlog`): a third one has no room.
const MAX_LARGE_ORGANIZATIONS: i64 = 2;

const COUNT_PENDING: &str =
    "SELECT count(*) AS events FROM (SELECT 1 FROM outbox WHERE dead_at IS NULL LIMIT $1) AS pending";

pub(in crate::outbox) fn claim(
    connection: &mut Connection,
    now: Timestamp,
    limit: BatchLimit,
) -> Result<Vec<ClaimedEvent>, DatabaseError> {
    claim_by(connection, CLAIM, now, limit)
}

pub(in crate::outbox) fn claim_isolated(
    connection: &mut Connection,
    now: Timestamp,
) -> Result<IsolatedClaim, DatabaseError> {
    let limit = BatchLimit { events: 1, bytes: 0 };
    if let Some(claimed) = claim_by(connection, CLAIM_ISOLATED, now, limit)?.pop() {
        return Ok(IsolatedClaim::Due(claimed));
    }
    let first: Option<i64> = outbox::table
        .filter(outbox::dead_at.is_null())
        .filter(outbox::cut_short.ge(ISOLATION_THRESHOLD))
        .order((outbox::next_attempt_at, outbox::id))
        .select(outbox::next_attempt_at)
        .first(connection)
        .optional()?;
    let waiting = |due| IsolatedClaim::Waiting(Timestamp::saturating_from_millis(due));
    Ok(first.map_or(IsolatedClaim::NoneIsolated, waiting))
}

fn claim_by(
    connection: &mut Connection,
    statement: &'static str,
    now: Timestamp,
    limit: BatchLimit,
) -> Result<Vec<ClaimedEvent>, DatabaseError> {
    let rows: Vec<ClaimedRow> = static_sql(statement)
        .bind::<BigInt, _>(now.plus_millis(LEASE_MILLIS).as_millis())
        .bind::<BigInt, _>(now.as_millis())
        .bind::<BigInt, _>(i64::from(limit.events))
        .bind::<BigInt, _>(i64::try_from(limit.bytes).unwrap_or(i64::MAX))
        .get_results(connection)?;
    let mut claimed: Vec<ClaimedEvent> = rows.into_iter().map(ClaimedEvent::from).collect();
    claimed.sort_by_key(|row| row.event.id);
    Ok(claimed)
}

pub(in crate::outbox) fn renew(
    connection: &mut Connection,
    ids: &[EventId],
    now: Timestamp,
) -> Result<(), DatabaseError> {
    diesel::update(outbox::table.filter(outbox::id.eq_any(stored(ids))))
        .set(outbox::claimed_until.eq(now.plus_millis(LEASE_MILLIS).as_millis()))
        .execute(connection)?;
    Ok(())
}

pub(in crate::outbox) fn record_results(
    connection: &mut Connection,
    results: &PublishResults,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    if results.all_published() {
        return delete_published(connection, &results.published);
    }
    connection.transaction(|connection| {
        delete_published(connection, &results.published)?;
        diesel::update(outbox::table.filter(outbox::id.eq_any(stored(&results.released))))
            .set(outbox::claimed_until.eq(0))
            .execute(connection)?;
        for row in &results.postponed {
            diesel::update(outbox::table.filter(outbox::id.eq(StoredId::of(row.id))))
                .set((
                    outbox::claimed_until.eq(0),
                    outbox::attempts.eq(outbox::attempts + i32::from(row.counts_attempt)),
                    outbox::next_attempt_at.eq(row.next_attempt_at.as_millis()),
                    outbox::last_error.eq(&row.reason),
                ))
                .execute(connection)?;
        }
        for (id, reason) in &results.dead {
            diesel::update(outbox::table.filter(outbox::id.eq(StoredId::of(*id))))
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

/// Only while no relay of this outbox runs: the standalone calls it at its start.
pub(in crate::outbox) fn release_all_claims(
    connection: &mut Connection,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    static_sql(RELEASE_ALL_CLAIMS).bind::<BigInt, _>(now.as_millis()).execute(connection)?;
    Ok(())
}

pub(in crate::outbox) fn repair_clock_skew(
    connection: &mut Connection,
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

pub(in crate::outbox) fn oldest_pending(
    connection: &mut Connection,
) -> Result<Option<Timestamp>, DatabaseError> {
    let pending = outbox::table.filter(outbox::dead_at.is_null());
    let oldest: Option<i64> = pending.select(min(outbox::created_at)).first(connection)?;
    Ok(oldest.map(Timestamp::saturating_from_millis))
}

pub(in crate::outbox) fn backlog(
    connection: &mut Connection,
    limit: u64,
) -> Result<(Option<Timestamp>, u64), DatabaseError> {
    let oldest = oldest_pending(connection)?;
    // The common case: no count.
    if oldest.is_none() {
        return Ok((None, 0));
    }
    let counted: PendingCount = static_sql(COUNT_PENDING)
        .bind::<BigInt, _>(i64::try_from(limit).unwrap_or(i64::MAX))
        .get_result(connection)?;
    Ok((oldest, to_u64(counted.events)))
}

pub(in crate::outbox) fn organizations_with_backlog(
    connection: &mut Connection,
    events: u64,
) -> Result<Vec<(OrganizationId, u64)>, DatabaseError> {
    let rows: Vec<(StoredId, i64)> = outbox::table
        .filter(outbox::dead_at.is_null())
        .group_by(outbox::organization_id)
        .having(count_star().ge(i64::try_from(events).unwrap_or(i64::MAX)))
        .order(outbox::organization_id)
        .limit(MAX_LARGE_ORGANIZATIONS)
        .select((outbox::organization_id, count_star()))
        .load(connection)?;
    Ok(rows.into_iter().map(|(organization, events)| (organization.0.into(), to_u64(events))).collect())
}

pub(in crate::outbox) fn status(connection: &mut Connection) -> Result<OutboxStatus, DatabaseError> {
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
    let oldest_pending = oldest_pending(connection)?;
    Ok(OutboxStatus { pending: to_u64(pending), oldest_pending, last_error, dead: to_u64(dead) })
}

pub(in crate::outbox) fn dead_events(
    connection: &mut Connection,
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

pub(in crate::outbox) fn retry_dead(
    connection: &mut Connection,
    id: EventId,
    now: Timestamp,
) -> Result<bool, DatabaseError> {
    let dead = outbox::table.filter(outbox::id.eq(StoredId::of(id))).filter(outbox::dead_at.is_not_null());
    let changed = diesel::update(dead)
        .set((
            outbox::dead_at.eq(None::<i64>),
            outbox::attempts.eq(0),
            outbox::cut_short.eq(0),
            outbox::claimed_until.eq(0),
            outbox::next_attempt_at.eq(now.as_millis()),
        ))
        .execute(connection)?;
    Ok(changed > 0)
}

pub(in crate::outbox) fn drop_dead(connection: &mut Connection, id: EventId) -> Result<bool, DatabaseError> {
    let dead = outbox::table.filter(outbox::id.eq(StoredId::of(id))).filter(outbox::dead_at.is_not_null());
    Ok(diesel::delete(dead).execute(connection)? > 0)
}

#[derive(QueryableByName)]
struct PendingCount {
    #[diesel(sql_type = BigInt)]
    events: i64,
}

#[derive(QueryableByName)]
#[diesel(table_name = outbox)]
struct ClaimedRow {
    id: StoredId,
    topic: String,
    organization_id: StoredId,
    needs_consumer: bool,
    payload: String,
    created_at: i64,
    attempts: i32,
    cut_short: i32,
}

impl From<ClaimedRow> for ClaimedEvent {
    fn from(row: ClaimedRow) -> Self {
        Self {
            event: OutgoingEvent {
                id: row.id.0.into(),
                topic: row.topic,
                organization_id: row.organization_id.0.into(),
                needs_consumer: row.needs_consumer,
                payload: row.payload,
                attempt: to_u32(row.attempts) + 1,
                times_cut_short: to_u32(row.cut_short),
            },
            created_at: Timestamp::saturating_from_millis(row.created_at),
        }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = outbox)]
struct DeadRow {
    id: StoredId,
    topic: String,
    organization_id: StoredId,
    created_at: i64,
    dead_at: Option<i64>,
    attempts: i32,
    last_error: Option<String>,
    payload: String,
}

impl From<DeadRow> for DeadEvent {
    fn from(row: DeadRow) -> Self {
        Self {
            id: row.id.0.into(),
            topic: row.topic,
            organization_id: row.organization_id.0.into(),
            created_at: Timestamp::saturating_from_millis(row.created_at),
            dead_at: Timestamp::saturating_from_millis(row.dead_at.unwrap_or_default()),
            attempts: to_u32(row.attempts),
            last_error: row.last_error.unwrap_or_default(),
            payload: row.payload,
        }
    }
}

fn stored(ids: &[EventId]) -> Vec<StoredId> {
    ids.iter().map(|id| StoredId::of(*id)).collect()
}

fn to_u32(number: i32) -> u32 {
    u32::try_from(number).unwrap_or_default()
}

fn to_u64(rows: i64) -> u64 {
    u64::try_from(rows).unwrap_or_default()
}
