//! Refused imports: the latest of each organization.

use assay_contracts::ids::OrganizationId;
use assay_contracts::json::JsonFault;
use assay_contracts::refusal::{ImportRefusal, MAX_REFUSALS};
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, StoredId};
use diesel::prelude::*;

use super::schema::refusals;
use super::{Connection, row_limit};

/// Inserts refusals of an organization and removes the older ones beyond [`MAX_REFUSALS`]; runs inside a transaction. One statement
/// for each refusal is enough: a gateway reports at most [`MAX_REFUSALS`] every few seconds.
pub fn keep(
    tx: &mut Connection,
    organization_id: OrganizationId,
    reported: &[ImportRefusal],
) -> Result<(), DatabaseError> {
    let organization = StoredId::of(organization_id);
    for refusal in reported {
        let json = serde_json::to_string(refusal)
            .map_err(|error| DatabaseError::Corrupt(JsonFault::of(&error).to_string()))?;
        diesel::insert_into(refusals::table)
            .values((
                refusals::id.eq(StoredId::of(refusal.id)),
                refusals::organization_id.eq(organization),
                refusals::refused_at.eq(refusal.refused_at.as_millis()),
                refusals::refusal.eq(json),
            ))
            .on_conflict_do_nothing()
            .execute(tx)?;
    }
    // Transactions of other gateways do not see each other's refusals and may leave some more: the next one removes them.
    let surplus: Vec<StoredId> = refusals::table
        .select(refusals::id)
        .filter(refusals::organization_id.eq(organization))
        .order(refusals::id.desc())
        .limit(row_limit(10 * MAX_REFUSALS))
        .offset(row_limit(MAX_REFUSALS))
        .load(tx)?;
    diesel::delete(refusals::table.filter(refusals::id.eq_any(surplus))).execute(tx)?;
    Ok(())
}

/// The latest refusals of an organization, newest first. One that cannot be read is left out: after a rollback, a later release may
/// have left codes that this one does not know.
pub fn list(
    connection: &mut Connection,
    organization_id: OrganizationId,
) -> Result<Vec<ImportRefusal>, DatabaseError> {
    let rows: Vec<String> = refusals::table
        .filter(refusals::organization_id.eq(StoredId::of(organization_id)))
        .order(refusals::id.desc())
        .limit(row_limit(MAX_REFUSALS))
        .select(refusals::refusal)
        .load(connection)?;
    Ok(rows.iter().filter_map(|row| serde_json::from_str(row).ok()).collect())
}

pub fn prune(tx: &mut Connection, before: Timestamp, limit: usize) -> Result<usize, DatabaseError> {
    let expired: Vec<StoredId> = refusals::table
        .select(refusals::id)
        .filter(refusals::refused_at.lt(before.as_millis()))
        .order(refusals::refused_at)
        .limit(row_limit(limit))
        .load(tx)?;
    Ok(diesel::delete(refusals::table.filter(refusals::id.eq_any(expired))).execute(tx)?)
}
