//! Claims of due messages, and the results of attempts.

use std::collections::HashSet;

use assay_contracts::time::Timestamp;
use assay_contracts::webhook::{AttemptError, DeliveryStatus, DisabledReason};
use assay_platform::db::{DatabaseError, StoredId};
use diesel::dsl::{auto_type, exists, sql};
use diesel::expression::SqlLiteral;
use diesel::expression::expression_types::NotSelectable;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use uuid::Uuid;

use super::record::EndpointRecord;
use super::schema::{attempts, deliveries, endpoints};
use super::{Connection, lock_due_messages};
use crate::domain::attempt::ClaimedMessage;
use crate::domain::endpoint::Endpoint;
use crate::domain::schedule::{MIN_GIVEN_UP_TO_DISABLE, RetryDecision};
use crate::store::{AttemptResult, ClaimTerms};

/// A literal that equals the predicate of the partial index: with a bound value the index would not be used.
const IS_PENDING: &str = "deliveries.status = 'pending'";

/// A claim chooses among at least this many endpoints, even when it takes fewer messages.
const MIN_CANDIDATES: usize = 64;

pub fn claim(connection: &mut Connection, terms: &ClaimTerms) -> Result<Vec<ClaimedMessage>, DatabaseError> {
    let mut candidates = endpoints_with_due_messages(connection, terms)?;
    let mut in_flight = terms.in_flight.clone();
    // A stable sort: endpoints with equal counts stay in random order.
    candidates.sort_by_key(|endpoint| in_flight.get(&endpoint.organization_id).copied().unwrap_or_default());
    let mut claimed = Vec::new();
    for endpoint in candidates {
        let organization_in_flight = in_flight.entry(endpoint.organization_id).or_default();
        let room = terms.limit.saturating_sub(claimed.len()).min(terms.per_endpoint);
        let room = room.min(terms.per_organization.saturating_sub(*organization_in_flight));
        if room > 0 {
            let found = claim_from(connection, &endpoint, terms, room)?;
            *organization_in_flight += found.len();
            claimed.extend(found);
        }
    }
    Ok(claimed)
}

/// In random order, so that none starves; without busy endpoints and those of organizations at their limit.
fn endpoints_with_due_messages(
    connection: &mut Connection,
    terms: &ClaimTerms,
) -> Result<Vec<Endpoint>, DatabaseError> {
    let busy: Vec<StoredId> = terms.busy.iter().map(|id| StoredId::of(*id)).collect();
    let at_limit = terms.in_flight.iter().filter(|(_, count)| **count >= terms.per_organization);
    let at_limit: Vec<StoredId> = at_limit.map(|(id, _)| StoredId::of(*id)).collect();
    let due_of_endpoint = due(terms.now.as_millis()).filter(deliveries::endpoint_id.eq(endpoints::id));
    let found: Vec<EndpointRecord> = endpoints::table
        .select(EndpointRecord::as_select())
        .filter(endpoints::enabled)
        .filter(endpoints::deleted_at.is_null())
        .filter(endpoints::id.ne_all(busy))
        .filter(endpoints::organization_id.ne_all(at_limit))
        .filter(exists(due_of_endpoint))
        .order(sql::<NotSelectable>("random()"))
        .limit(i64::try_from(terms.limit.max(MIN_CANDIDATES)).unwrap_or(i64::MAX))
        .load(connection)?;
    Ok(found.into_iter().map(Endpoint::from).collect())
}

#[auto_type]
fn due(now: i64) -> _ {
    let is_pending: SqlLiteral<Bool> = sql::<Bool>(IS_PENDING);
    deliveries::table
        .filter(is_pending)
        .filter(deliveries::payload.is_not_null())
        .filter(deliveries::due_at.le(now))
}

/// Ids of the next due messages of an endpoint.
#[auto_type]
pub(in crate::store) fn due_messages(endpoint_id: StoredId, now: i64, limit: i64) -> _ {
    // The type `due` is the one that `auto_type` has made of the function.
    let all_due: due = due(now);
    all_due
        .filter(deliveries::endpoint_id.eq(endpoint_id))
        .select(deliveries::id)
        .order((deliveries::due_at, deliveries::id))
        .limit(limit)
}

fn claim_from(
    connection: &mut Connection,
    endpoint: &Endpoint,
    terms: &ClaimTerms,
    limit: usize,
) -> Result<Vec<ClaimedMessage>, DatabaseError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let due_ids = lock_due_messages(connection, endpoint.id, terms.now, limit)?;
    let leased: Vec<(StoredId, String, i32, i32)> =
        diesel::update(deliveries::table.filter(deliveries::id.eq_any(due_ids)))
            .set((
                deliveries::due_at.eq(terms.lease_until.as_millis()),
                deliveries::lease.eq(Some(StoredId(terms.lease.as_uuid()))),
            ))
            .returning((
                deliveries::id,
                // This transaction has locked the rows: no erasure can intervene.
                deliveries::payload.assume_not_null(),
                deliveries::attempts,
                deliveries::earlier_attempts,
            ))
            .get_results(connection)?;
    let to_message = |(id, payload, attempts, earlier): (StoredId, String, i32, i32)| ClaimedMessage {
        id: id.0.into(),
        lease: terms.lease,
        endpoint_id: endpoint.id,
        organization_id: endpoint.organization_id,
        url: endpoint.url.clone(),
        secrets: endpoint.secrets.clone(),
        payload,
        attempts: u32::try_from(attempts).unwrap_or_default(),
        attempts_before_replay: u32::try_from(earlier).unwrap_or_default(),
    };
    Ok(leased.into_iter().map(to_message).collect())
}

pub fn record_attempt(connection: &mut Connection, result: &AttemptResult) -> Result<bool, DatabaseError> {
    let AttemptResult { message, decision, now, .. } = result;
    let (status, due_at) = match decision {
        RetryDecision::Delivered => (DeliveryStatus::Delivered, *now),
        RetryDecision::RetryAt(due_at) => (DeliveryStatus::Pending, *due_at),
        RetryDecision::GivenUp | RetryDecision::Gone => (DeliveryStatus::Failed, *now),
    };
    let updated = diesel::update(deliveries::table.find(StoredId::of(message.id)))
        .filter(deliveries::lease.eq(Some(StoredId(message.lease.as_uuid()))))
        .set((
            deliveries::status.eq(status.as_str()),
            deliveries::due_at.eq(due_at.as_millis()),
            deliveries::lease.eq(None::<StoredId>),
            deliveries::attempts.eq(deliveries::attempts + 1),
        ))
        .execute(connection)?;
    if updated == 0 {
        return Ok(false);
    }
    insert_attempt(connection, result)?;
    // Each of these statements filters by the address that was called: the owner of the endpoint may have changed it meanwhile.
    match decision {
        RetryDecision::Delivered => clear_failures(connection, message)?,
        RetryDecision::RetryAt(_) => mark_failing(connection, message, *now)?,
        RetryDecision::GivenUp => {
            mark_failing(connection, message, *now)?;
            count_given_up(connection, result)?;
        }
        RetryDecision::Gone => {
            mark_failing(connection, message, *now)?;
            disable(connection, message, DisabledReason::Gone, *now)?;
        }
    }
    Ok(true)
}

fn insert_attempt(connection: &mut Connection, result: &AttemptResult) -> Result<(), DatabaseError> {
    let AttemptResult { message, attempt, .. } = result;
    let number = i32::try_from(message.attempts).unwrap_or(i32::MAX).saturating_add(1);
    diesel::insert_into(attempts::table)
        .values((
            attempts::delivery_id.eq(StoredId::of(message.id)),
            attempts::number.eq(number),
            attempts::attempted_at.eq(attempt.attempted_at.as_millis()),
            attempts::duration_ms.eq(i64::try_from(attempt.duration_ms).unwrap_or(i64::MAX)),
            attempts::status_code.eq(attempt.status_code.and_then(|code| i16::try_from(code).ok())),
            attempts::error.eq(attempt.error.map(AttemptError::as_str)),
        ))
        .execute(connection)?;
    Ok(())
}

/// Writes nothing when the endpoint is not failing.
fn clear_failures(connection: &mut Connection, message: &ClaimedMessage) -> Result<(), DatabaseError> {
    diesel::update(endpoints::table.find(StoredId::of(message.endpoint_id)))
        .filter(endpoints::url.eq(&message.url))
        .filter(endpoints::failing_since.is_not_null())
        .set((endpoints::failing_since.eq(None::<i64>), endpoints::given_up.eq(0)))
        .execute(connection)?;
    Ok(())
}

fn mark_failing(
    connection: &mut Connection,
    message: &ClaimedMessage,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    diesel::update(endpoints::table.find(StoredId::of(message.endpoint_id)))
        .filter(endpoints::url.eq(&message.url))
        .filter(endpoints::failing_since.is_null())
        .set(endpoints::failing_since.eq(now.as_millis()))
        .execute(connection)?;
    Ok(())
}

fn count_given_up(connection: &mut Connection, result: &AttemptResult) -> Result<(), DatabaseError> {
    let AttemptResult { message, disable_cutoff, now, .. } = result;
    let counted: Option<(Option<i64>, i32)> =
        diesel::update(endpoints::table.find(StoredId::of(message.endpoint_id)))
            .filter(endpoints::url.eq(&message.url))
            .set(endpoints::given_up.eq(endpoints::given_up + 1))
            .returning((endpoints::failing_since, endpoints::given_up))
            .get_result(connection)
            .optional()?;
    let Some((since, given_up)) = counted else { return Ok(()) };
    let has_failed_too_long =
        disable_cutoff.zip(since).is_some_and(|(cutoff, since)| since <= cutoff.as_millis());
    let is_enough = u32::try_from(given_up).is_ok_and(|given_up| given_up >= MIN_GIVEN_UP_TO_DISABLE);
    if has_failed_too_long && is_enough {
        disable(connection, message, DisabledReason::Failing, *now)?;
    }
    Ok(())
}

fn disable(
    connection: &mut Connection,
    message: &ClaimedMessage,
    reason: DisabledReason,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    diesel::update(endpoints::table.find(StoredId::of(message.endpoint_id)))
        .filter(endpoints::url.eq(&message.url))
        .filter(endpoints::enabled)
        .set((
            endpoints::enabled.eq(false),
            endpoints::disabled_reason.eq(reason.as_str()),
            endpoints::updated_at.eq(now.as_millis()),
        ))
        .execute(connection)?;
    Ok(())
}

pub fn release(
    connection: &mut Connection,
    messages: &[ClaimedMessage],
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let ids: Vec<StoredId> = messages.iter().map(|message| StoredId::of(message.id)).collect();
    let leases: HashSet<Uuid> = messages.iter().map(|message| message.lease.as_uuid()).collect();
    let leases: Vec<Option<StoredId>> = leases.into_iter().map(|lease| Some(StoredId(lease))).collect();
    diesel::update(deliveries::table.filter(deliveries::id.eq_any(ids)))
        .filter(deliveries::lease.eq_any(leases))
        .set((deliveries::due_at.eq(now.as_millis()), deliveries::lease.eq(None::<StoredId>)))
        .execute(connection)?;
    Ok(())
}
