//! Deletion of rows and retention of files.

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::retention::RetentionPeriod;
use assay_contracts::time::Timestamp;
use assay_messaging::inbox;
use assay_platform::db::DatabaseError;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{BigInt, Uuid as SqlUuid};
use uuid::Uuid;

use crate::domain::removal::DeletedRow;
use crate::store::DELETIONS_CONSUMER;
use crate::store::progress::postgres_placeholders;
use crate::store::removal::{self, DELETE_ROW, new_deletions};

/// The last condition allows partition pruning.
const REMOVE_OLDER: &str = "
    DELETE FROM evaluation_rows
    WHERE ticket_id = ANY (ARRAY (SELECT ticket_id FROM evaluation_rows WHERE organization_id = $1 AND ticket_id < $2
                                  ORDER BY ticket_id LIMIT $3))
      AND organization_id = $1 AND ticket_id < $2";

const PRUNE_TOMBSTONES: &str = "
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
        let new = inbox::record(connection, DELETIONS_CONSUMER, &ids, now)?;
        for row in new_deletions(rows, &new) {
            sql_query(postgres_placeholders(DELETE_ROW))
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

pub(super) fn remove_older_than(
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

pub(super) fn prune_tombstones(
    connection: &mut PgConnection,
    before: Timestamp,
    limit: i64,
) -> Result<usize, DatabaseError> {
    Ok(sql_query(PRUNE_TOMBSTONES)
        .bind::<BigInt, _>(before.as_millis())
        .bind::<BigInt, _>(limit)
        .execute(connection)?)
}

pub(super) fn apply_file_retention(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    period: RetentionPeriod,
    limit: i64,
) -> Result<usize, DatabaseError> {
    Ok(sql_query(postgres_placeholders(&removal::apply_file_retention(period)))
        .bind::<SqlUuid, _>(organization_id.as_uuid())
        .bind::<BigInt, _>(limit)
        .execute(connection)?)
}
