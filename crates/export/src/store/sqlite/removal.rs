//! Rows that go, and files whose period changes. All inside the transaction of `Sqlite::write`.

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::retention::Period;
use assay_contracts::time::Timestamp;
use assay_messaging::inbox::record_sqlite;
use assay_platform::db::DatabaseError;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{BigInt, Text};
use diesel::sqlite::SqliteConnection;
use uuid::Uuid;

use crate::domain::removal::DeletedRow;
use crate::store::DELETIONS_CONSUMER;
use crate::store::record::StoredId;
use crate::store::removal::{self, DELETE_ROW, unhandled};

const REMOVE_OLDER: &str = "
    DELETE FROM evaluation_rows WHERE ticket_id IN
    (SELECT ticket_id FROM evaluation_rows WHERE organization_id = ? AND ticket_id < ? ORDER BY ticket_id LIMIT ?)";

const FORGET_DELETIONS: &str = "
    DELETE FROM evaluation_rows WHERE ticket_id IN
    (SELECT ticket_id FROM evaluation_rows WHERE deleted_at IS NOT NULL AND deleted_at < ?
      ORDER BY deleted_at LIMIT ?)";

pub(super) fn delete_rows(
    connection: &mut SqliteConnection,
    rows: Vec<DeletedRow>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let ids: Vec<_> = rows.iter().map(|row| row.event_id).collect();
    let new = record_sqlite(connection, DELETIONS_CONSUMER, &ids, now)?;
    for row in unhandled(rows, &new) {
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

pub(super) fn remove_older(
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

pub(super) fn forget_deletions(
    connection: &mut SqliteConnection,
    before: Timestamp,
    limit: i64,
) -> Result<usize, DatabaseError> {
    Ok(sql_query(FORGET_DELETIONS)
        .bind::<BigInt, _>(before.as_millis())
        .bind::<BigInt, _>(limit)
        .execute(connection)?)
}

pub(super) fn set_file_period(
    connection: &mut SqliteConnection,
    organization_id: OrganizationId,
    period: Period,
    limit: i64,
) -> Result<usize, DatabaseError> {
    Ok(sql_query(removal::set_file_period(period))
        .bind::<Text, _>(StoredId::of(organization_id))
        .bind::<BigInt, _>(limit)
        .execute(connection)?)
}
