//! Deletion of rows and retention of files.

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::retention::RetentionPeriod;
use assay_contracts::time::Timestamp;
use assay_messaging::inbox::Connection as _;
use assay_platform::db::{DatabaseError, StoredId};
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::BigInt;

use super::facts::{self, TicketRecord};
use super::{Connection, Id, PRUNE_TOMBSTONES, REMOVE_OLDER};
use crate::domain::removal::DeletedRow;
use crate::store::DELETIONS_CONSUMER;

/// Writes a tombstone under the key of the row, existing or not: concurrent writers of the key wait for each other. Its
/// organization is the nil UUID, and its timestamp is newer than that of every evaluation (`i64::MAX`). An existing tombstone and
/// a row of another organization stay as they are.
const WRITE_TOMBSTONE: &str = "
    INSERT INTO evaluation_rows (ticket_id, organization_id, conversation_started_at, evaluated_at, evaluation_id,
                                 columns_version, axis_line, audit_line, deleted_at)
    VALUES ($1, '00000000-0000-0000-0000-000000000000', 0, 9223372036854775807,
            '00000000-0000-0000-0000-000000000000', 0, '', '', $2)
    ON CONFLICT (ticket_id) DO UPDATE
       SET organization_id = excluded.organization_id,
           conversation_started_at = excluded.conversation_started_at,
           evaluated_at = excluded.evaluated_at,
           evaluation_id = excluded.evaluation_id,
           columns_version = excluded.columns_version,
           axis_line = excluded.axis_line,
           audit_line = excluded.audit_line,
           deleted_at = excluded.deleted_at
     WHERE evaluation_rows.organization_id = $3";

pub fn delete_rows(
    connection: &mut Connection,
    mut rows: Vec<DeletedRow>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let ids: Vec<_> = rows.iter().map(|row| row.event_id).collect();
    let new = connection.record_events(DELETIONS_CONSUMER, &ids, now)?;
    rows.retain(|row| new.contains(&row.event_id));
    // The same lock order in all transactions avoids deadlocks.
    rows.sort_by_key(|row| row.ticket_id);
    for row in &rows {
        sql_query(WRITE_TOMBSTONE)
            .bind::<Id, _>(StoredId::of(row.ticket_id))
            .bind::<BigInt, _>(row.deleted_at.as_millis())
            .bind::<Id, _>(StoredId::of(row.organization_id))
            .execute(connection)?;
    }
    facts::remove(connection, rows.iter().map(|row| (row.organization_id, row.ticket_id)), now)
}

pub fn remove_older_than(
    connection: &mut Connection,
    organization_id: OrganizationId,
    before: TicketId,
    limit: u32,
    now: Timestamp,
) -> Result<usize, DatabaseError> {
    let removed: Vec<TicketRecord> = sql_query(REMOVE_OLDER)
        .bind::<Id, _>(StoredId::of(organization_id))
        .bind::<Id, _>(StoredId::of(before))
        .bind::<BigInt, _>(i64::from(limit))
        .load(connection)?;
    facts::remove(
        connection,
        removed.iter().map(|record| (organization_id, record.ticket_id.0.into())),
        now,
    )?;
    Ok(removed.len())
}

pub fn prune_tombstones(
    connection: &mut Connection,
    before: Timestamp,
    limit: u32,
) -> Result<usize, DatabaseError> {
    Ok(sql_query(PRUNE_TOMBSTONES)
        .bind::<BigInt, _>(before.as_millis())
        .bind::<BigInt, _>(i64::from(limit))
        .execute(connection)?)
}

/// Updates the expiry of files where it differs. `updated_at` of a complete export is the time of its completion.
pub fn apply_file_retention(
    connection: &mut Connection,
    organization_id: OrganizationId,
    period: RetentionPeriod,
    limit: u32,
) -> Result<usize, DatabaseError> {
    let expiry = match period.millis() {
        Some(millis) => format!("updated_at + {millis}"),
        None => Timestamp::MAX.as_millis().to_string(),
    };
    let statement = format!(
        "UPDATE exports SET file_expires_at = {expiry} WHERE id IN \
         (SELECT id FROM exports WHERE organization_id = $1 AND status = 'complete' AND file_removed_at IS NULL \
          AND file_expires_at <> {expiry} LIMIT $2)"
    );
    Ok(sql_query(statement)
        .bind::<Id, _>(StoredId::of(organization_id))
        .bind::<BigInt, _>(i64::from(limit))
        .execute(connection)?)
}
