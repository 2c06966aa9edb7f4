//! Creates and reads jobs, sets their target sequences, and records that files were removed.

use std::collections::{BTreeMap, BTreeSet};

use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_messaging::outbox::{Connection as _, FastPathClaim};
use assay_platform::db::idempotency::Connection as _;
use assay_platform::db::{DatabaseError, StoredId};
use assay_platform::web::cursor::Position;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::Bool;

use super::record::{JobRecord, further_filters};
use super::schema::{exports, progress};
use super::{Connection, lock_until_commit};
use crate::domain::job::Job;
use crate::store::{Created, Creation, ExpiredFile, FileUse, JobWithoutTarget, NotCreated};

/// The conditions of partial indexes. They are literals, because a bound value would not match the index.
const IS_OPEN: &str = "status IN ('pending', 'running')";
const HAS_FILE: &str = "status = 'complete' AND file_removed_at IS NULL";

pub(in crate::store) fn create(
    connection: &mut Connection,
    creation: &Creation,
) -> Result<Created, NotCreated> {
    // First: a second request with the same key waits here until this one is committed.
    if let Some(record) = &creation.record {
        let earlier = connection.store_keys(std::slice::from_ref(record), creation.job.created_at)?;
        if let Some(earlier) = earlier.into_iter().flatten().next() {
            return Ok(Created::KeyReused(earlier));
        }
    }
    let organization = StoredId::of(creation.job.organization_id);
    lock_until_commit(connection, &format!("assay exports of {}", organization.0))?;
    let open: i64 = exports::table
        .filter(exports::organization_id.eq(organization))
        .filter(sql::<Bool>(IS_OPEN))
        .count()
        .get_result(connection)?;
    if open >= i64::from(creation.max_open) {
        return Err(NotCreated::TooManyOpen);
    }
    insert(connection, creation)?;
    connection.enqueue_events(std::slice::from_ref(&creation.event), FastPathClaim::NONE)?;
    Ok(Created::New)
}

pub fn page(
    connection: &mut Connection,
    organization_id: OrganizationId,
    after: Option<Position>,
    limit: u32,
) -> Result<Vec<Job>, DatabaseError> {
    let mut query = exports::table
        .select(JobRecord::as_select())
        .filter(exports::organization_id.eq(StoredId::of(organization_id)))
        .order((exports::created_at.desc(), exports::id.desc()))
        .limit(i64::from(limit))
        .into_boxed();
    if let Some(Position { created_at, id }) = after {
        let moment = created_at.as_millis();
        // The first condition follows from the second; with it the index scan can begin at the position.
        query = query
            .filter(exports::created_at.le(moment))
            .filter(exports::created_at.lt(moment).or(exports::id.lt(StoredId::of(id))));
    }
    query.load::<JobRecord>(connection)?.into_iter().map(Job::try_from).collect()
}

pub fn find(connection: &mut Connection, id: ExportId) -> Result<Option<Job>, DatabaseError> {
    let found: Option<JobRecord> =
        exports::table.find(StoredId::of(id)).select(JobRecord::as_select()).first(connection).optional()?;
    found.map(Job::try_from).transpose()
}

pub fn without_target(
    connection: &mut Connection,
    limit: u32,
) -> Result<Vec<JobWithoutTarget>, DatabaseError> {
    let found: Vec<(StoredId, StoredId)> = exports::table
        .select((exports::id, exports::organization_id))
        .filter(sql::<Bool>(IS_OPEN))
        .filter(exports::target_sequence.is_null())
        .order((exports::created_at, exports::id))
        .limit(i64::from(limit))
        .load(connection)?;
    let job = |(id, organization): (StoredId, StoredId)| JobWithoutTarget {
        id: id.0.into(),
        organization_id: organization.0.into(),
    };
    Ok(found.into_iter().map(job).collect())
}

pub fn set_target_sequence(
    connection: &mut Connection,
    id: ExportId,
    target: i64,
) -> Result<(), DatabaseError> {
    diesel::update(exports::table.find(StoredId::of(id)))
        .filter(exports::target_sequence.is_null())
        .set(exports::target_sequence.eq(target))
        .execute(connection)?;
    Ok(())
}

/// Number of sequences between the watermark of the organization and the target of the job; `None` without a target.
pub fn evaluation_lag(connection: &mut Connection, id: ExportId) -> Result<Option<i64>, DatabaseError> {
    let (target, watermark): (Option<i64>, Option<i64>) = exports::table
        .left_join(progress::table.on(progress::organization_id.eq(exports::organization_id)))
        .filter(exports::id.eq(StoredId::of(id)))
        .select((exports::target_sequence, progress::watermark.nullable()))
        .first(connection)?;
    Ok(target.map(|target| (target - watermark.unwrap_or(0)).max(0)))
}

pub fn expired_files(
    connection: &mut Connection,
    now: Timestamp,
    after: Option<(Timestamp, ExportId)>,
    limit: u32,
) -> Result<Vec<ExpiredFile>, DatabaseError> {
    let mut expired = exports::table
        .select((
            exports::id,
            exports::object_key.assume_not_null(),
            exports::file_expires_at.assume_not_null(),
        ))
        .filter(sql::<Bool>(HAS_FILE))
        .filter(exports::file_expires_at.le(now.as_millis()))
        .order((exports::file_expires_at, exports::id))
        .limit(i64::from(limit))
        .into_boxed();
    if let Some((expires_at, id)) = after {
        let expires_at = expires_at.as_millis();
        let is_later = exports::file_expires_at.assume_not_null().gt(expires_at);
        let is_equal = exports::file_expires_at.assume_not_null().eq(expires_at);
        expired = expired.filter(is_later.or(is_equal.and(exports::id.gt(StoredId::of(id)))));
    }
    let found: Vec<(StoredId, String, i64)> = expired.load(connection)?;
    let file = |(id, object_key, expires_at): (StoredId, String, i64)| ExpiredFile {
        id: id.0.into(),
        object_key,
        expires_at: Timestamp::saturating_from_millis(expires_at),
    };
    Ok(found.into_iter().map(file).collect())
}

pub fn mark_file_removed(
    connection: &mut Connection,
    id: ExportId,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    diesel::update(exports::table.find(StoredId::of(id)))
        .filter(exports::status.eq("complete"))
        .set(exports::file_removed_at.eq(now.as_millis()))
        .execute(connection)?;
    Ok(())
}

pub fn file_uses(
    connection: &mut Connection,
    ids: &[ExportId],
) -> Result<BTreeMap<ExportId, FileUse>, DatabaseError> {
    let ids: Vec<StoredId> = ids.iter().map(|id| StoredId::of(*id)).collect();
    let found: Vec<(StoredId, String, Option<String>, Option<i64>)> = exports::table
        .filter(exports::id.eq_any(ids))
        .select((exports::id, exports::status, exports::object_key, exports::file_removed_at))
        .load(connection)?;
    let file_use = |(id, status, object_key, removed_at): (StoredId, String, Option<String>, Option<i64>)| {
        let file_use = match (status.as_str(), object_key, removed_at) {
            ("pending" | "running", ..) => FileUse::Open,
            (_, Some(object_key), None) => FileUse::File { object_key },
            _ => FileUse::None,
        };
        (id.0.into(), file_use)
    };
    Ok(found.into_iter().map(file_use).collect())
}

pub fn organizations_with_jobs(
    connection: &mut Connection,
    organizations: &BTreeSet<OrganizationId>,
) -> Result<BTreeSet<OrganizationId>, DatabaseError> {
    let organizations: Vec<StoredId> = organizations.iter().map(|id| StoredId::of(*id)).collect();
    let found: Vec<StoredId> = exports::table
        .filter(exports::organization_id.eq_any(organizations))
        .select(exports::organization_id)
        .distinct()
        .load(connection)?;
    Ok(found.into_iter().map(|id| id.0.into()).collect())
}

fn insert(connection: &mut Connection, creation: &Creation) -> Result<(), DatabaseError> {
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
            exports::target_sequence.eq(creation.target_sequence),
            exports::filters.eq(further_filters(&job.filters)),
        ))
        .execute(connection)?;
    Ok(())
}
