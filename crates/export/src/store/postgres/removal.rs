//! Rows that go, and files whose period changes.

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::retention::Period;
use assay_contracts::time::Timestamp;
use assay_messaging::inbox::record_postgres;
use assay_platform::db::DatabaseError;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{BigInt, Uuid as SqlUuid};
use uuid::Uuid;

use crate::domain::removal::DeletedRow;
use crate::store::DELETIONS_CONSUMER;
use crate::store::progress::numbered;
use crate::store::removal::{self, DELETE_ROW, unhandled};

/// The last condition names the partitions that need not be looked at.
const REMOVE_OLDER: &str = "
    DELETE FROM evaluation_rows
    WHERE ticket_id = ANY (ARRAY (SELECT ticket_id FROM evaluation_rows WHERE organization_id = $1 AND ticket_id < $2
                                  ORDER BY ticket_id LIMIT $3))
      AND organization_id = $1 AND ticket_id < $2";

const FORGET_DELETIONS: &str = "
    DELETE FROM evaluation_rows
    WHERE ticket_id = ANY (ARRAY (SELECT ticket_id FROM evaluation_rows
                                  WHERE deleted_at IS NOT NULL AND deleted_at < $1 ORDER BY deleted_at LIMIT $2))
      AND deleted_at IS NOT NULL";

pub(super) fn delete_rows(
    connection: &mut PgConnection,
    rows: Vec<DeletedRow>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    connection.transaction(|connection| {
        let ids: Vec<_> = rows.iter().map(|row| row.event_id).collect();
        let new = record_postgres(connection, DELETIONS_CONSUMER, &ids, now)?;
        for row in unhandled(rows, &new) {
            sql_query(numbered(DELETE_ROW))
                .bind::<SqlUuid, _>(row.ticket_id.as_uuid())
                .bind::<SqlUuid, _>(Uuid::nil())
                .bind::<SqlUuid, _>(Uuid::nil())
                .bind::<BigInt, _>(row.deleted_at.as_millis())
                .bind::<SqlUuid, _>(row.organization_id.as_uuid())
                .execute(connection)?;
        }
        Ok(())
    })
}

pub(super) fn remove_older(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    before: TicketId,
    limit: i64,
) -> Result<usize, DatabaseError> {
    Ok(sql_query(REMOVE_OLDER)
        .bind::<SqlUuid, _>(organization_id.as_uuid())
        .bind::<SqlUuid, _>(before.as_uuid())
        .bind::<BigInt, _>(limit)
        .execute(connection)?)
}

pub(super) fn forget_deletions(
    connection: &mut PgConnection,
    before: Timestamp,
    limit: i64,
) -> Result<usize, DatabaseError> {
    Ok(sql_query(FORGET_DELETIONS)
        .bind::<BigInt, _>(before.as_millis())
        .bind::<BigInt, _>(limit)
        .execute(connection)?)
}

pub(super) fn set_file_period(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    period: Period,
    limit: i64,
) -> Result<usize, DatabaseError> {
    Ok(sql_query(numbered(&removal::set_file_period(period)))
        .bind::<SqlUuid, _>(organization_id.as_uuid())
        .bind::<BigInt, _>(limit)
        .execute(connection)?)
}
