//! Retention overrides on SQLite.

use assay_contracts::ids::OrganizationId;
use assay_platform::db::DatabaseError;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{BigInt, Integer, Nullable, Text};
use diesel::sqlite::SqliteConnection;

use super::super::rows::RetentionRow;
use crate::domain::{OrganizationName, RetentionChange, RetentionRecord};

const FIND: &str = "
    SELECT organizations.id, organizations.name, transcripts_days, evaluations_days, files_days
    FROM organizations LEFT JOIN retention ON retention.organization_id = organizations.id
    WHERE organizations.name = ?";

/// Every id is greater than the empty text.
const PAGE: &str = "
    SELECT organizations.id, organizations.name, transcripts_days, evaluations_days, files_days
    FROM organizations LEFT JOIN retention ON retention.organization_id = organizations.id
    WHERE organizations.id > ? ORDER BY organizations.id LIMIT ?";

const SET: &str = "
    INSERT INTO retention (organization_id, transcripts_days, evaluations_days, files_days) VALUES (?, ?, ?, ?)
    ON CONFLICT (organization_id) DO UPDATE
       SET transcripts_days = excluded.transcripts_days, evaluations_days = excluded.evaluations_days,
           files_days = excluded.files_days";

pub(super) fn page(
    connection: &mut SqliteConnection,
    after: Option<OrganizationId>,
    limit: i64,
) -> Result<Vec<RetentionRecord>, DatabaseError> {
    let rows: Vec<RetentionRow> = sql_query(PAGE)
        .bind::<Text, _>(after.map(|id| id.to_string()).unwrap_or_default())
        .bind::<BigInt, _>(limit)
        .load(connection)?;
    rows.into_iter().map(RetentionRow::into_record).collect()
}

pub(super) fn find(
    connection: &mut SqliteConnection,
    name: &OrganizationName,
) -> Result<Option<RetentionRecord>, DatabaseError> {
    let row: Option<RetentionRow> =
        sql_query(FIND).bind::<Text, _>(name.as_str()).get_result(connection).optional()?;
    row.map(RetentionRow::into_record).transpose()
}

/// Inside the only write transaction.
pub(super) fn set(
    connection: &mut SqliteConnection,
    name: &OrganizationName,
    change: RetentionChange,
) -> Result<Option<RetentionRecord>, DatabaseError> {
    let Some(mut record) = find(connection, name)? else { return Ok(None) };
    record.overrides = change.apply(record.overrides);
    let [transcripts, evaluations, files] = RetentionRow::days(record.overrides);
    sql_query(SET)
        .bind::<Text, _>(record.organization_id.to_string())
        .bind::<Nullable<Integer>, _>(transcripts)
        .bind::<Nullable<Integer>, _>(evaluations)
        .bind::<Nullable<Integer>, _>(files)
        .execute(connection)?;
    Ok(Some(record))
}
