//! Retention overrides on PostgreSQL.

use assay_contracts::ids::OrganizationId;
use assay_platform::db::DatabaseError;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{BigInt, Integer, Nullable, Text, Uuid as SqlUuid};

use super::super::rows::RetentionRow;
use crate::domain::{OrganizationName, RetentionChange, RetentionRecord};

/// Serializes concurrent changes of an organization.
const LOCK: &str = "SELECT id FROM organizations WHERE name = $1 FOR UPDATE";

const FIND: &str = "
    SELECT organizations.id::text, organizations.name, transcripts_days, evaluations_days, files_days
    FROM organizations LEFT JOIN retention ON retention.organization_id = organizations.id
    WHERE organizations.name = $1";

const PAGE: &str = "
    SELECT organizations.id::text, organizations.name, transcripts_days, evaluations_days, files_days
    FROM organizations LEFT JOIN retention ON retention.organization_id = organizations.id
    WHERE $1::uuid IS NULL OR organizations.id > $1 ORDER BY organizations.id LIMIT $2";

const SET: &str = "
    INSERT INTO retention (organization_id, transcripts_days, evaluations_days, files_days) VALUES ($1, $2, $3, $4)
    ON CONFLICT (organization_id) DO UPDATE
       SET transcripts_days = excluded.transcripts_days, evaluations_days = excluded.evaluations_days,
           files_days = excluded.files_days";

pub(super) fn page(
    connection: &mut PgConnection,
    after: Option<OrganizationId>,
    limit: i64,
) -> Result<Vec<RetentionRecord>, DatabaseError> {
    let rows: Vec<RetentionRow> = sql_query(PAGE)
        .bind::<Nullable<SqlUuid>, _>(after.map(|id| id.as_uuid()))
        .bind::<BigInt, _>(limit)
        .load(connection)?;
    rows.into_iter().map(RetentionRow::into_record).collect()
}

pub(super) fn find(
    connection: &mut PgConnection,
    name: &OrganizationName,
) -> Result<Option<RetentionRecord>, DatabaseError> {
    let row: Option<RetentionRow> =
        sql_query(FIND).bind::<Text, _>(name.as_str()).get_result(connection).optional()?;
    row.map(RetentionRow::into_record).transpose()
}

/// Inside a transaction.
pub(super) fn set(
    connection: &mut PgConnection,
    name: &OrganizationName,
    change: RetentionChange,
) -> Result<Option<RetentionRecord>, DatabaseError> {
    sql_query(LOCK).bind::<Text, _>(name.as_str()).execute(connection)?;
    let Some(mut record) = find(connection, name)? else { return Ok(None) };
    record.overrides = change.apply(record.overrides);
    let [transcripts, evaluations, files] = RetentionRow::days(record.overrides);
    sql_query(SET)
        .bind::<SqlUuid, _>(record.organization_id.as_uuid())
        .bind::<Nullable<Integer>, _>(transcripts)
        .bind::<Nullable<Integer>, _>(evaluations)
        .bind::<Nullable<Integer>, _>(files)
        .execute(connection)?;
    Ok(Some(record))
}
