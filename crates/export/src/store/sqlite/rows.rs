//! The read model of exports. All functions run inside the transaction of `Sqlite::write`.

use assay_contracts::ids::ExportId;
use assay_contracts::time::Timestamp;
use assay_messaging::inbox::{self, PRUNE_BATCH, RETENTION_MILLIS};
use assay_platform::db::{DatabaseError, idempotency, static_sql};
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{BigInt, SmallInt, Text};
use diesel::sqlite::SqliteConnection;

use super::sequences;
use crate::domain::evaluation_row::{EvaluationRow, newest_of_each_ticket};
use crate::store::progress::{TARGET_AND_WATERMARK, TargetAndWatermark, group_by_organization, new_rows};
use crate::store::record::StoredId;
use crate::store::{CONSUMER, ReceivedRow};

/// Replaces a row under the rule of `EvaluationRow::is_newer_than`.
const UPSERT: &str = "
    INSERT INTO evaluation_rows (ticket_id, organization_id, conversation_started_at, evaluated_at, evaluation_id,
                                 columns_version, axis_line, audit_line)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (ticket_id) DO UPDATE
       SET organization_id = excluded.organization_id,
           conversation_started_at = excluded.conversation_started_at,
           evaluated_at = excluded.evaluated_at,
           evaluation_id = excluded.evaluation_id,
           columns_version = excluded.columns_version,
           axis_line = excluded.axis_line,
           audit_line = excluded.audit_line
     WHERE (evaluation_rows.evaluated_at, evaluation_rows.evaluation_id)
         < (excluded.evaluated_at, excluded.evaluation_id)";

pub(super) fn record(
    connection: &mut SqliteConnection,
    received: Vec<ReceivedRow>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let ids: Vec<_> = received.iter().map(|received| received.event_id).collect();
    let new = inbox::record(connection, CONSUMER, &ids, now)?;
    let received = new_rows(received, &new);
    let sequences_by_organization = group_by_organization(received.iter());
    let rows = received.into_iter().map(|received| received.row).collect();
    newest_of_each_ticket(rows).iter().try_for_each(|row| upsert(connection, row))?;
    sequences_by_organization.into_iter().try_for_each(|(organization, sequences)| {
        sequences::record(connection, organization, &sequences, now)
    })
}

pub(super) fn prune(connection: &mut SqliteConnection, now: Timestamp) -> Result<usize, DatabaseError> {
    let forgotten = inbox::prune(connection, now.plus_millis(-RETENTION_MILLIS), PRUNE_BATCH)?;
    Ok(forgotten + idempotency::prune(connection, now)?)
}

pub(super) fn lag(connection: &mut SqliteConnection, id: ExportId) -> Result<Option<i64>, DatabaseError> {
    let found: TargetAndWatermark =
        sql_query(TARGET_AND_WATERMARK).bind::<Text, _>(StoredId::of(id)).get_result(connection)?;
    Ok(found.lag())
}

fn upsert(connection: &mut SqliteConnection, row: &EvaluationRow) -> Result<(), DatabaseError> {
    static_sql(UPSERT)
        .bind::<Text, _>(StoredId::of(row.ticket_id))
        .bind::<Text, _>(StoredId::of(row.organization_id))
        .bind::<BigInt, _>(row.conversation_started_at.as_millis())
        .bind::<BigInt, _>(row.evaluated_at.as_millis())
        .bind::<Text, _>(StoredId::of(row.evaluation_id))
        .bind::<SmallInt, _>(row.columns_version)
        .bind::<Text, _>(&row.axis_line)
        .bind::<Text, _>(&row.audit_line)
        .execute(connection)?;
    Ok(())
}
