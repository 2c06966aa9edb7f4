//! The statements of parked events, compiled for both databases. Transactions are short: none is open while events are handled.

use assay_contracts::ids::{EventId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, StoredId, static_sql};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable};
use uuid::Uuid;

use super::{CLAIMABLE, Connection, Id};
use crate::envelope::OutgoingEvent;
use crate::outbox::Connection as _;
use crate::parking::rows::{Claim, Key, LEASE_MILLIS, MAX_LEASE_MILLIS, ParkedEvent, Settled, SmallBacklogs};
use crate::parking::turns::take_turns;

diesel::table! {
    use super::super::Id;
    use diesel::sql_types::*;

    parked (organization_id, event_id) {
        organization_id -> Id,
        event_id -> Id,
        topic -> Text,
        payload -> Text,
        claimed_until -> BigInt,
        claims -> Integer,
    }
}

/// The rows of these keys. Two separate filters are enough, because events of two organizations never share an id.
macro_rules! rows_of {
    ($keys:expr) => {
        parked::table
            .filter(
                parked::organization_id
                    .eq_any($keys.iter().map(|(organization, _)| StoredId::of(*organization))),
            )
            .filter(parked::event_id.eq_any($keys.iter().map(|(_, event)| StoredId::of(*event))))
    };
}

/// The organizations with parked events after `$1`, in order. Each needs one index look-up, however many events it has.
const NEXT_ORGANIZATIONS: &str = "
    WITH RECURSIVE found (organization_id, number) AS (
        SELECT (SELECT organization_id FROM parked WHERE organization_id > $1 ORDER BY organization_id LIMIT 1), 1
        UNION ALL
        SELECT (SELECT parked.organization_id FROM parked WHERE parked.organization_id > found.organization_id
                ORDER BY parked.organization_id LIMIT 1), found.number + 1
        FROM found WHERE found.organization_id IS NOT NULL AND found.number < $2)
    SELECT organization_id FROM found ORDER BY number";

/// An organization with at most this many parked events has a small backlog.
const MAX_SMALL_BACKLOG: usize = 200;

/// How many organizations are counted in one search for small backlogs.
const COUNTED_ORGANIZATIONS: usize = 100;

/// In the order of the index: without an order PostgreSQL may scan the table where an organization has most of its rows.
const COUNT_OF_ORGANIZATION: &str = "
    SELECT count(*) AS events FROM (
        SELECT 1 FROM parked WHERE organization_id = $1 ORDER BY event_id LIMIT $2) AS counted";

const COUNT: &str = "SELECT count(*) AS events FROM (SELECT 1 FROM parked LIMIT $1) AS counted";

pub(in crate::parking) fn organizations(
    connection: &mut Connection,
    after: OrganizationId,
    limit: usize,
) -> Result<Vec<OrganizationId>, DatabaseError> {
    let mut found = next_organizations(connection, after, limit)?;
    if found.len() < limit && !after.as_uuid().is_nil() {
        let from_start = next_organizations(connection, Uuid::nil().into(), limit - found.len())?;
        found.extend(from_start.into_iter().take_while(|organization| *organization <= after));
    }
    Ok(found)
}

/// At most `limit` organizations with a small backlog, among [`COUNTED_ORGANIZATIONS`] after `after`.
pub(in crate::parking) fn small_backlogs(
    connection: &mut Connection,
    after: OrganizationId,
    limit: usize,
) -> Result<SmallBacklogs, DatabaseError> {
    let mut found = SmallBacklogs::default();
    for organization in organizations(connection, after, COUNTED_ORGANIZATIONS)? {
        found.last_listed = Some(organization);
        let counted: CountRow = static_sql(COUNT_OF_ORGANIZATION)
            .bind::<Id, _>(StoredId::of(organization))
            .bind::<BigInt, _>(row_limit(MAX_SMALL_BACKLOG + 1))
            .get_result(connection)?;
        if counted.events <= row_limit(MAX_SMALL_BACKLOG) {
            found.organizations.push(organization);
        }
        if found.organizations.len() == limit {
            break;
        }
    }
    Ok(found)
}

fn next_organizations(
    connection: &mut Connection,
    after: OrganizationId,
    limit: usize,
) -> Result<Vec<OrganizationId>, DatabaseError> {
    let rows: Vec<OrganizationRow> = static_sql(NEXT_ORGANIZATIONS)
        .bind::<Id, _>(StoredId::of(after))
        .bind::<BigInt, _>(row_limit(limit))
        .load(connection)?;
    Ok(rows.into_iter().filter_map(|row| Some(row.organization_id?.0.into())).collect())
}

pub(in crate::parking) fn claim(
    connection: &mut Connection,
    organizations: &[OrganizationId],
    now: Timestamp,
    limit: usize,
) -> Result<Claim, DatabaseError> {
    let share = limit.div_ceil(organizations.len().max(1));
    let mut queues = Vec::with_capacity(organizations.len());
    for organization in organizations {
        queues.push((*organization, claimable(connection, *organization, now, share)?));
    }
    // Organizations with more events may use what others leave of their share.
    let unused = limit.saturating_sub(queues.iter().map(|(_, events)| events.len()).sum());
    for (organization, events) in queues.iter_mut().filter(|(_, events)| unused > 0 && events.len() == share)
    {
        *events = claimable(connection, *organization, now, share + unused)?;
    }
    let (events, last_turn) = take_turns(queues, limit);
    let keys: Vec<Key> = events.iter().map(ParkedEvent::key).collect();
    diesel::update(rows_of!(keys))
        .set((
            parked::claimed_until.eq(now.plus_millis(LEASE_MILLIS).as_millis()),
            parked::claims.eq(parked::claims + 1),
        ))
        .execute(connection)?;
    Ok(Claim { events, last_turn })
}

fn claimable(
    connection: &mut Connection,
    organization: OrganizationId,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<ParkedEvent>, DatabaseError> {
    let rows: Vec<ParkedRow> = static_sql(CLAIMABLE)
        .bind::<Id, _>(StoredId::of(organization))
        .bind::<BigInt, _>(now.as_millis())
        .bind::<BigInt, _>(now.plus_millis(MAX_LEASE_MILLIS).as_millis())
        .bind::<BigInt, _>(row_limit(limit))
        .load(connection)?;
    Ok(rows.into_iter().map(ParkedEvent::from).collect())
}

pub(in crate::parking) fn renew(
    connection: &mut Connection,
    keys: &[Key],
    now: Timestamp,
) -> Result<(), DatabaseError> {
    diesel::update(rows_of!(keys))
        .set(parked::claimed_until.eq(now.plus_millis(LEASE_MILLIS).as_millis()))
        .execute(connection)?;
    Ok(())
}

pub(in crate::parking) fn settle(
    connection: &mut Connection,
    settled: &Settled,
) -> Result<(), DatabaseError> {
    let returned: Vec<Key> = settled.returned.iter().map(|event| (event.organization_id, event.id)).collect();
    let removed: Vec<Key> = settled.done.iter().chain(&returned).copied().collect();
    diesel::delete(rows_of!(removed)).execute(connection)?;
    // A released claim is not counted, so `claims` counts only claims that ended with their process.
    diesel::update(rows_of!(settled.released))
        .set((parked::claimed_until.eq(0), parked::claims.eq(parked::claims - 1)))
        .execute(connection)?;
    connection.enqueue_returned_events(&settled.returned)
}

pub(in crate::parking) fn count(connection: &mut Connection, limit: usize) -> Result<u64, DatabaseError> {
    let counted: CountRow = static_sql(COUNT).bind::<BigInt, _>(row_limit(limit)).get_result(connection)?;
    Ok(u64::try_from(counted.events).unwrap_or_default())
}

#[derive(QueryableByName)]
struct OrganizationRow {
    #[diesel(sql_type = Nullable<Id>)]
    organization_id: Option<StoredId>,
}

#[derive(QueryableByName)]
struct CountRow {
    #[diesel(sql_type = BigInt)]
    events: i64,
}

#[derive(QueryableByName)]
#[diesel(table_name = parked)]
struct ParkedRow {
    organization_id: StoredId,
    event_id: StoredId,
    topic: String,
    payload: String,
    claims: i32,
}

impl From<ParkedRow> for ParkedEvent {
    fn from(row: ParkedRow) -> Self {
        // Only events that were neither returned nor cut short are parked (`may_be_parked`).
        let event = OutgoingEvent {
            id: EventId::from(row.event_id.0),
            topic: row.topic,
            organization_id: row.organization_id.0.into(),
            needs_consumer: true,
            payload: row.payload,
            attempt: 1,
            times_cut_short: 0,
        };
        Self { event, earlier_claims: u32::try_from(row.claims).unwrap_or_default() }
    }
}

fn row_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
