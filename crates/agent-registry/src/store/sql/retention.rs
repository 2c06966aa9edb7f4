//! Retention overrides.

use assay_contracts::ids::OrganizationId;
use assay_contracts::retention::RetentionPeriod;
use assay_platform::db::{DatabaseError, StoredId};
use diesel::prelude::*;
use uuid::Uuid;

use super::schema::{organizations, retention};
use super::{Connection, lock_organization};
use crate::domain::{OrganizationName, RetentionChange, RetentionOverrides, RetentionRecord};

#[derive(Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = retention, treat_none_as_null = true, treat_none_as_default_value = false)]
struct OverridesRow {
    transcripts_days: Option<i32>,
    evaluations_days: Option<i32>,
    files_days: Option<i32>,
}

/// Id and name of an organization; no overrides for one that has never had any.
type Row = (StoredId, String, Option<OverridesRow>);

pub fn page(
    connection: &mut Connection,
    after: Option<OrganizationId>,
    limit: usize,
) -> Result<Vec<RetentionRecord>, DatabaseError> {
    // Every id is greater than nil.
    let after = StoredId(after.map_or(Uuid::nil(), Uuid::from));
    let rows: Vec<Row> = organizations::table
        .left_join(retention::table)
        .filter(organizations::id.gt(after))
        .order(organizations::id)
        .limit(i64::try_from(limit).unwrap_or(i64::MAX))
        .select((organizations::id, organizations::name, Option::<OverridesRow>::as_select()))
        .load(connection)?;
    rows.into_iter().map(into_record).collect()
}

pub fn find(
    connection: &mut Connection,
    name: &OrganizationName,
) -> Result<Option<RetentionRecord>, DatabaseError> {
    let row: Option<Row> = organizations::table
        .left_join(retention::table)
        .filter(organizations::name.eq(name.as_str()))
        .select((organizations::id, organizations::name, Option::<OverridesRow>::as_select()))
        .first(connection)
        .optional()?;
    row.map(into_record).transpose()
}

/// Call inside a write transaction.
pub fn set(
    connection: &mut Connection,
    name: &OrganizationName,
    change: RetentionChange,
) -> Result<Option<RetentionRecord>, DatabaseError> {
    lock_organization(connection, name)?;
    let Some(mut record) = find(connection, name)? else { return Ok(None) };
    record.overrides = change.apply(record.overrides);
    let row = OverridesRow::from(record.overrides);
    diesel::insert_into(retention::table)
        .values((retention::organization_id.eq(StoredId::of(record.organization_id)), &row))
        .on_conflict(retention::organization_id)
        .do_update()
        .set(&row)
        .execute(connection)?;
    Ok(Some(record))
}

fn into_record((id, organization, row): Row) -> Result<RetentionRecord, DatabaseError> {
    let overrides = row.map(RetentionOverrides::try_from).transpose()?.unwrap_or_default();
    Ok(RetentionRecord { organization_id: id.0.into(), organization, overrides })
}

impl From<RetentionOverrides> for OverridesRow {
    fn from(overrides: RetentionOverrides) -> Self {
        let days = |period: Option<RetentionPeriod>| {
            period.map(|period| i32::try_from(period.stored_days()).unwrap_or(i32::MAX))
        };
        Self {
            transcripts_days: days(overrides.transcripts),
            evaluations_days: days(overrides.evaluations),
            files_days: days(overrides.files),
        }
    }
}

impl TryFrom<OverridesRow> for RetentionOverrides {
    type Error = DatabaseError;

    fn try_from(row: OverridesRow) -> Result<Self, DatabaseError> {
        Ok(Self {
            transcripts: parse_period(row.transcripts_days)?,
            evaluations: parse_period(row.evaluations_days)?,
            files: parse_period(row.files_days)?,
        })
    }
}

fn parse_period(days: Option<i32>) -> Result<Option<RetentionPeriod>, DatabaseError> {
    let Some(stored) = days else { return Ok(None) };
    let period = u32::try_from(stored).ok().and_then(|days| RetentionPeriod::from_stored_days(days).ok());
    match period {
        Some(period) => Ok(Some(period)),
        None => Err(DatabaseError::Corrupt(format!("retention period of {stored} days"))),
    }
}
