//! Leases of workers on jobs. Every statement except the claim filters by the lease, so that a worker that lost it changes
//! nothing. `greatest` keeps `updated_at` monotonic under clock skew.

use std::sync::LazyLock;

use assay_contracts::time::Timestamp;
use assay_messaging::outbox::{Connection as _, FastPathClaim};
use assay_platform::db::{DatabaseError, StoredId, static_sql};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Integer};
use uuid::Uuid;

use super::record::{ClaimRecord, saturating_i64};
use super::schema::exports;
use super::{Connection, Id, SKIP_LOCKED, greatest, lock_until_commit};
use crate::domain::lease::{Claim, ClaimTerms, FinishedFile};
use crate::store::notifications::{FailedJob, Notifications};

/// The next job: the oldest of the organization with the fewest jobs under a lease. A job between two attempts has no lease.
///
/// The placeholders are fields of [`ClaimTerms`]: `now`, `latest_lease_end`, `except` (the nil UUID for `None`), `pending_before` and
/// `max_attempts`. A lease that ends after `latest_lease_end` was set by a wrong clock and counts as expired.
static DUE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT exports.id FROM exports
           LEFT JOIN (SELECT organization_id, count(*) AS jobs FROM exports
                       WHERE status = 'running' AND lease_owner IS NOT NULL AND lease_until > $1 AND lease_until <= $2
                       GROUP BY organization_id) AS leased
                  ON leased.organization_id = exports.organization_id
          WHERE exports.status IN ('pending', 'running')
            AND exports.organization_id <> $3
            AND ((exports.status = 'pending' AND exports.created_at <= $4)
              OR (exports.status = 'running' AND (exports.lease_until <= $1 OR exports.lease_until > $2)
                  AND exports.attempts - exports.released_claims < $5))
          ORDER BY coalesce(leased.jobs, 0), exports.created_at, exports.id
          LIMIT 1 {SKIP_LOCKED}"
    )
});

#[derive(QueryableByName)]
struct DueJob {
    #[diesel(sql_type = Id)]
    id: StoredId,
}

pub fn claim(connection: &mut Connection, terms: ClaimTerms) -> Result<Option<Claim>, DatabaseError> {
    // Simultaneous claims would see the same numbers of leases, and all claim jobs of the same organization.
    lock_until_commit(connection, "assay export claims")?;
    let due: Option<DueJob> = static_sql(&DUE)
        .bind::<BigInt, _>(terms.now.as_millis())
        .bind::<BigInt, _>(terms.latest_lease_end.as_millis())
        .bind::<Id, _>(StoredId(terms.except.map_or(Uuid::nil(), |organization| organization.as_uuid())))
        .bind::<BigInt, _>(terms.pending_before.as_millis())
        .bind::<Integer, _>(saturating_i32(terms.max_attempts))
        .get_result(connection)
        .optional()?;
    let Some(due) = due else { return Ok(None) };
    let record: ClaimRecord = diesel::update(exports::table.find(due.id))
        .set((
            exports::status.eq("running"),
            exports::lease_owner.eq(StoredId(terms.owner.as_uuid())),
            exports::lease_until.eq(terms.now.plus_millis(terms.lease_millis).as_millis()),
            exports::attempts.eq(exports::attempts + 1),
            exports::updated_at.eq(greatest(exports::updated_at, terms.now.as_millis())),
        ))
        .returning(ClaimRecord::as_returning())
        .get_result(connection)?;
    record.into_claim(terms.owner).map(Some)
}

pub fn renew(
    connection: &mut Connection,
    claim: &Claim,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool, DatabaseError> {
    let changed = diesel::update(exports::table.find(StoredId::of(claim.id)))
        .filter(exports::lease_owner.eq(StoredId(claim.owner.as_uuid())))
        .set((
            exports::lease_until.eq(until.as_millis()),
            exports::updated_at.eq(greatest(exports::updated_at, now.as_millis())),
        ))
        .execute(connection)?;
    Ok(changed == 1)
}

pub fn complete(
    connection: &mut Connection,
    claim: &Claim,
    file: &FinishedFile,
    now: Timestamp,
    notifications: Notifications,
) -> Result<bool, DatabaseError> {
    let changed = diesel::update(exports::table.find(StoredId::of(claim.id)))
        .filter(exports::lease_owner.eq(StoredId(claim.owner.as_uuid())))
        .set((
            exports::status.eq("complete"),
            exports::lease_owner.eq(None::<StoredId>),
            exports::lease_until.eq(None::<i64>),
            exports::object_key.eq(&file.object_key),
            exports::file_bytes.eq(saturating_i64(file.bytes)),
            exports::file_rows.eq(saturating_i64(file.rows)),
            exports::file_sha256.eq(&file.sha256),
            exports::file_expires_at.eq(file.expires_at.as_millis()),
            exports::missing_evaluations.eq(file.missing_evaluations.map(saturating_i64)),
            exports::updated_at.eq(greatest(exports::updated_at, now.as_millis())),
        ))
        .execute(connection)?;
    if changed == 1 {
        let event = notifications.completed_event(claim, file, now)?;
        connection.enqueue_events(event.as_slice(), FastPathClaim::NONE)?;
        return Ok(true);
    }
    // The commit may have succeeded although its response was lost. That is not a lost lease: the file must not be removed.
    let stored_key: Option<Option<String>> = exports::table
        .find(StoredId::of(claim.id))
        .select(exports::object_key)
        .first(connection)
        .optional()?;
    Ok(stored_key.flatten().as_ref() == Some(&file.object_key))
}

pub fn fail(
    connection: &mut Connection,
    claim: &Claim,
    message: &str,
    now: Timestamp,
    notifications: Notifications,
) -> Result<bool, DatabaseError> {
    let changed = diesel::update(exports::table.find(StoredId::of(claim.id)))
        .filter(exports::lease_owner.eq(StoredId(claim.owner.as_uuid())))
        .set((
            exports::status.eq("failed"),
            exports::lease_owner.eq(None::<StoredId>),
            exports::lease_until.eq(None::<i64>),
            exports::error_message.eq(message),
            exports::updated_at.eq(greatest(exports::updated_at, now.as_millis())),
        ))
        .execute(connection)?;
    if changed == 1 {
        let event = notifications.failed_event(claim, message, now)?;
        connection.enqueue_events(event.as_slice(), FastPathClaim::NONE)?;
    }
    Ok(changed == 1)
}

/// Releases the lease; the job stays `running` without an owner until `due`. `released_claims`: 1 if the attempt is not counted,
/// otherwise 0.
pub fn release_until(
    connection: &mut Connection,
    claim: &Claim,
    due: Timestamp,
    released_claims: i32,
    now: Timestamp,
) -> Result<bool, DatabaseError> {
    let changed = diesel::update(exports::table.find(StoredId::of(claim.id)))
        .filter(exports::lease_owner.eq(StoredId(claim.owner.as_uuid())))
        .set((
            exports::lease_owner.eq(None::<StoredId>),
            exports::lease_until.eq(due.as_millis()),
            exports::released_claims.eq(exports::released_claims + released_claims),
            exports::updated_at.eq(greatest(exports::updated_at, now.as_millis())),
        ))
        .execute(connection)?;
    Ok(changed == 1)
}

pub fn fail_exhausted(
    connection: &mut Connection,
    max_attempts: u32,
    latest_lease_end: Timestamp,
    message: &str,
    now: Timestamp,
    notifications: Notifications,
) -> Result<usize, DatabaseError> {
    let counted_attempts = exports::attempts - exports::released_claims;
    let failed: Vec<FailedJob> = diesel::update(exports::table)
        .filter(sql::<Bool>("status = 'running'"))
        .filter(
            exports::lease_until
                .le(now.as_millis())
                .or(exports::lease_until.gt(latest_lease_end.as_millis())),
        )
        .filter(counted_attempts.ge(saturating_i32(max_attempts)))
        .set((
            exports::status.eq("failed"),
            exports::lease_owner.eq(None::<StoredId>),
            exports::lease_until.eq(None::<i64>),
            exports::error_message.eq(message),
            exports::updated_at.eq(greatest(exports::updated_at, now.as_millis())),
        ))
        .returning((exports::id, exports::organization_id, exports::kind))
        .get_results(connection)?;
    let count = failed.len();
    let events = notifications.failed_events(failed, message, now)?;
    connection.enqueue_events(&events, FastPathClaim::NONE)?;
    Ok(count)
}

fn saturating_i32(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}
