//! Creates and reads jobs.

use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_messaging::outbox::{self, DirectDispatch};
use assay_platform::db::DatabaseError;
use assay_platform::db::idempotency;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use diesel::sqlite::SqliteConnection;

use super::schema::exports;
use crate::domain::job::Job;
use crate::domain::position::Position;
use crate::store::record::{JobRecord, StoredId, expired_file};
use crate::store::{Created, Creation, ExpiredFile, JobWithoutTarget};

type JobColumns = (
    exports::id,
    exports::organization_id,
    exports::kind,
    exports::filter_from,
    exports::filter_to,
    exports::status,
    exports::created_at,
    exports::updated_at,
    exports::object_key,
    exports::file_bytes,
    exports::file_sha256,
    exports::file_expires_at,
    exports::error_message,
);

const JOB: JobColumns = (
    exports::id,
    exports::organization_id,
    exports::kind,
    exports::filter_from,
    exports::filter_to,
    exports::status,
    exports::created_at,
    exports::updated_at,
    exports::object_key,
    exports::file_bytes,
    exports::file_sha256,
    exports::file_expires_at,
    exports::error_message,
);

/// Must run inside the transaction of `Sqlite::write`.
pub(super) fn create(
    connection: &mut SqliteConnection,
    creation: &Creation,
) -> Result<Created, DatabaseError> {
    if let Some(record) = &creation.record {
        let earlier = idempotency::store(connection, std::slice::from_ref(record), creation.job.created_at)?;
        if let Some(earlier) = earlier.into_iter().flatten().next() {
            return Ok(Created::KeyReused(earlier));
        }
    }
    insert(connection, creation)?;
    outbox::enqueue(connection, std::slice::from_ref(&creation.event), DirectDispatch::NONE)?;
    Ok(Created::New)
}

pub(super) fn page(
    connection: &mut SqliteConnection,
    organization_id: OrganizationId,
    after: Option<Position>,
    limit: u32,
) -> Result<Vec<Job>, DatabaseError> {
    let mut query = exports::table
        .select(JOB)
        .filter(exports::organization_id.eq(StoredId::of(organization_id)))
        .order((exports::created_at.desc(), exports::id.desc()))
        .limit(i64::from(limit))
        .into_boxed();
    if let Some(Position { created_at, id }) = after {
        let moment = created_at.as_millis();
        // Redundant, but the index scan can start with it.
        query = query
            .filter(exports::created_at.le(moment))
            .filter(exports::created_at.lt(moment).or(exports::id.lt(StoredId::of(id))));
    }
    query.load::<JobRecord>(connection)?.into_iter().map(Job::try_from).collect()
}

pub(super) fn find(connection: &mut SqliteConnection, id: ExportId) -> Result<Option<Job>, DatabaseError> {
    let found: Option<JobRecord> =
        exports::table.find(StoredId::of(id)).select(JOB).first(connection).optional()?;
    found.map(Job::try_from).transpose()
}

pub(super) fn without_target(
    connection: &mut SqliteConnection,
    limit: u32,
) -> Result<Vec<JobWithoutTarget>, DatabaseError> {
    let found: Vec<(StoredId, StoredId)> = exports::table
        .select((exports::id, exports::organization_id))
        // A literal, to match the partial index.
        .filter(sql::<Bool>("status IN ('pending', 'running')"))
        .filter(exports::awaited_evaluations.is_null())
        .order((exports::created_at, exports::id))
        .limit(i64::from(limit))
        .load(connection)?;
    Ok(found.into_iter().map(JobWithoutTarget::from).collect())
}

pub(super) fn set_target_sequence(
    connection: &mut SqliteConnection,
    id: ExportId,
    target: i64,
) -> Result<(), DatabaseError> {
    diesel::update(exports::table.find(StoredId::of(id)))
        .filter(exports::awaited_evaluations.is_null())
        .set(exports::awaited_evaluations.eq(target))
        .execute(connection)?;
    Ok(())
}

pub(super) fn expired_files(
    connection: &mut SqliteConnection,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<ExpiredFile>, DatabaseError> {
    let found: Vec<(StoredId, Option<String>)> = exports::table
        .select((exports::id, exports::object_key))
        // A literal, to match the partial index: a bound value would not.
        .filter(sql::<Bool>("status = 'complete' AND file_removed_at IS NULL"))
        .filter(exports::file_expires_at.le(now.as_millis()))
        .order(exports::file_expires_at)
        .limit(i64::from(limit))
        .load(connection)?;
    Ok(found.into_iter().filter_map(expired_file).collect())
}

pub(super) fn mark_file_removed(
    connection: &mut SqliteConnection,
    id: ExportId,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    diesel::update(exports::table.find(StoredId::of(id)))
        .filter(exports::status.eq("complete"))
        .set(exports::file_removed_at.eq(now.as_millis()))
        .execute(connection)?;
    Ok(())
}

fn insert(connection: &mut SqliteConnection, creation: &Creation) -> Result<(), DatabaseError> {
    let job = &creation.job;
    diesel::insert_into(exports::table)
        .values((
            exports::id.eq(StoredId::of(job.id)),
            exports::organization_id.eq(StoredId::of(job.organization_id)),
            exports::kind.eq(job.kind.as_str()),
            exports::filter_from.eq(job.filters.from.map(Timestamp::as_millis)),
            exports::filter_to.eq(job.filters.to.map(Timestamp::as_millis)),
            exports::status.eq(job.status().as_str()),
            exports::created_at.eq(job.created_at.as_millis()),
            exports::updated_at.eq(job.updated_at.as_millis()),
            exports::awaited_evaluations.eq(creation.target_sequence),
        ))
        .execute(connection)?;
    Ok(())
}
