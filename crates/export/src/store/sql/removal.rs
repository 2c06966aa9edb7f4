//! Deletion of rows and retention of files. All functions run inside the transaction of `Sqlite::write`.

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::retention::RetentionPeriod;
use assay_contracts::time::Timestamp;
use assay_messaging::inbox;
use assay_platform::db::DatabaseError;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{BigInt, Text};
use diesel::sqlite::SqliteConnection;
use uuid::Uuid;

use crate::domain::removal::DeletedRow;
use crate::store::DELETIONS_CONSUMER;
use crate::store::record::StoredId;
use crate::store::removal::{self, DELETE_ROW, new_deletions};

const REMOVE_OLDER: &str = "
    DELETE FROM evaluation_rows WHERE ticket_id IN
    (SELECT ticket_id FROM evaluation_rows WHERE organization_id = ? AND ticket_id < ? ORDER BY ticket_id LIMIT ?)";

const PRUNE_TOMBSTONES: &str = "
    DELETE FROM evaluation_rows WHERE ticket_id IN
    (SELECT ticket_id FROM evaluation_rows WHERE deleted_at IS NOT NULL AND deleted_at < ?
      ORDER BY deleted_at LIMIT ?)";

pub(super) fn delete_rows(
    connection: &mut SqliteConnection,
    rows: Vec<DeletedRow>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let ids: Vec<_> = rows.iter().map(|row| row.event_id).collect();
    let new = inbox::record(connection, DELETIONS_CONSUMER, &ids, now)?;
    for row in new_deletions(rows, &new) {
        sql_query(DELETE_ROW)
            .bind::<Text, _>(StoredId::of(row.ticket_id))
            .bind::<Text, _>(StoredId::of(Uuid::nil()))
            .bind::<Text, _>(StoredId::of(Uuid::nil()))
            .bind::<BigInt, _>(row.deleted_at.as_millis())
            .bind::<Text, _>(StoredId::of(row.organization_id))
            .execute(connection)?;
    }
    Ok(())
}

pub(super) fn remove_older_than(
    connection: &mut SqliteConnection,
    organization_id: OrganizationId,
    before: TicketId,
    limit: i64,
) -> Result<usize, DatabaseError> {
    Ok(sql_query(REMOVE_OLDER)
        .bind::<Text, _>(StoredId::of(organization_id))
        .bind::<Text, _>(StoredId::of(before))
        .bind::<BigInt, _>(limit)
        .execute(connection)?)
}

pub(super) fn prune_tombstones(
    connection: &mut SqliteConnection,
    before: Timestamp,
    limit: i64,
) -> Result<usize, DatabaseError> {
    Ok(sql_query(PRUNE_TOMBSTONES)
        .bind::<BigInt, _>(before.as_millis())
        .bind::<BigInt, _>(limit)
        .execute(connection)?)
}

pub(super) fn apply_file_retention(
    connection: &mut SqliteConnection,
    organization_id: OrganizationId,
    period: RetentionPeriod,
    limit: i64,
) -> Result<usize, DatabaseError> {
    Ok(sql_query(removal::apply_file_retention(period))
        .bind::<Text, _>(StoredId::of(organization_id))
        .bind::<BigInt, _>(limit)
        .execute(connection)?)
}
