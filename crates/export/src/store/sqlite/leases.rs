//! Workers and their holds on jobs. Every statement but the claim names the hold, so that a worker that lost it
//! changes nothing. All inside the transaction of `Sqlite::write`, which there is one of at a time.

use assay_contracts::time::Timestamp;
use assay_messaging::outbox::{Handover, enqueue_sqlite};
use assay_platform::db::DatabaseError;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool};
use diesel::sqlite::SqliteConnection;

use super::schema::exports;
use crate::domain::lease::{Claim, ClaimTerms, FinishedFile};
use crate::store::finished::{Announces, FailedJob};
use crate::store::record::{ClaimRecord, StoredId, count};

#[declare_sql_function]
extern "SQL" {
    /// Keeps `updated_at` from going back, whichever clock is behind.
    #[sql_name = "max"]
    fn greatest(one: BigInt, other: BigInt) -> BigInt;
}

pub(super) fn claim(
    connection: &mut SqliteConnection,
    terms: ClaimTerms,
) -> Result<Option<Claim>, DatabaseError> {
    let tries = exports::attempts - exports::hand_backs;
    let waiting = exports::status.eq("pending").and(exports::created_at.le(terms.pending_before.as_millis()));
    let left_behind = exports::status
        .eq("running")
        .and(exports::lease_until.le(terms.now.as_millis()))
        .and(tries.lt(max_tries(terms.max_tries)));
    let due: Option<StoredId> = exports::table
        .select(exports::id)
        // A literal, word for word that of the partial index: a bound value would not be recognised.
        .filter(sql::<Bool>("status IN ('pending', 'running')"))
        .filter(waiting.or(left_behind))
        .order((exports::created_at, exports::id))
        .first(connection)
        .optional()?;
    let Some(id) = due else { return Ok(None) };
    let record: ClaimRecord = diesel::update(exports::table.find(id))
        .set((
            exports::status.eq("running"),
            exports::lease_owner.eq(StoredId(terms.owner.as_uuid())),
            exports::lease_until.eq(terms.now.plus_millis(terms.lease_millis).as_millis()),
            exports::attempts.eq(exports::attempts + 1),
            exports::updated_at.eq(greatest(exports::updated_at, terms.now.as_millis())),
        ))
        .returning((
            exports::id,
            exports::organization_id,
            exports::kind,
            exports::filter_from,
            exports::filter_to,
            exports::attempts,
            exports::hand_backs,
        ))
        .get_result(connection)?;
    record.held_by(terms.owner).map(Some)
}

pub(super) fn heartbeat(
    connection: &mut SqliteConnection,
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

pub(super) fn complete(
    connection: &mut SqliteConnection,
    claim: &Claim,
    file: &FinishedFile,
    now: Timestamp,
    announces: Announces,
) -> Result<bool, DatabaseError> {
    let changed = diesel::update(exports::table.find(StoredId::of(claim.id)))
        .filter(exports::lease_owner.eq(StoredId(claim.owner.as_uuid())))
        .set((
            exports::status.eq("complete"),
            exports::lease_owner.eq(None::<StoredId>),
            exports::lease_until.eq(None::<i64>),
            exports::object_key.eq(&file.object_key),
            exports::file_bytes.eq(count(file.bytes)),
            exports::file_rows.eq(count(file.rows)),
            exports::file_sha256.eq(&file.sha256),
            exports::file_expires_at.eq(file.expires_at.as_millis()),
            exports::updated_at.eq(greatest(exports::updated_at, now.as_millis())),
        ))
        .execute(connection)?;
    if changed == 1 {
        let event = announces.complete(claim, file, now)?;
        enqueue_sqlite(connection, event.as_slice(), Handover::NONE)?;
        return Ok(true);
    }
    // A commit whose answer was lost on the way must not be taken for a lost hold: the file would be removed.
    let shown: Option<Option<String>> = exports::table
        .find(StoredId::of(claim.id))
        .select(exports::object_key)
        .first(connection)
        .optional()?;
    Ok(shown.flatten().as_ref() == Some(&file.object_key))
}

pub(super) fn fail(
    connection: &mut SqliteConnection,
    claim: &Claim,
    message: &str,
    now: Timestamp,
    announces: Announces,
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
        let event = announces.failed(claim, message, now)?;
        enqueue_sqlite(connection, event.as_slice(), Handover::NONE)?;
    }
    Ok(changed == 1)
}

/// The job stays `running` and waits without an owner until `due`.
pub(super) fn let_go(
    connection: &mut SqliteConnection,
    claim: &Claim,
    due: Timestamp,
    hand_backs: i32,
    now: Timestamp,
) -> Result<bool, DatabaseError> {
    let changed = diesel::update(exports::table.find(StoredId::of(claim.id)))
        .filter(exports::lease_owner.eq(StoredId(claim.owner.as_uuid())))
        .set((
            exports::lease_owner.eq(None::<StoredId>),
            exports::lease_until.eq(due.as_millis()),
            exports::hand_backs.eq(exports::hand_backs + hand_backs),
            exports::updated_at.eq(greatest(exports::updated_at, now.as_millis())),
        ))
        .execute(connection)?;
    Ok(changed == 1)
}

pub(super) fn fail_exhausted(
    connection: &mut SqliteConnection,
    limit: u32,
    message: &str,
    now: Timestamp,
    announces: Announces,
) -> Result<usize, DatabaseError> {
    let tries = exports::attempts - exports::hand_backs;
    let failed: Vec<FailedJob> = diesel::update(exports::table)
        .filter(sql::<Bool>("status = 'running'"))
        .filter(exports::lease_until.le(now.as_millis()))
        .filter(tries.ge(max_tries(limit)))
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
    let events = announces.all_failed(failed, message, now)?;
    enqueue_sqlite(connection, &events, Handover::NONE)?;
    Ok(count)
}

fn max_tries(limit: u32) -> i32 {
    i32::try_from(limit).unwrap_or(i32::MAX)
}
