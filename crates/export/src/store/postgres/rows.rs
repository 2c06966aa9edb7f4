//! The read model of exports.

use assay_contracts::ids::ExportId;
use assay_contracts::time::Timestamp;
use assay_messaging::inbox::{self, PRUNE_BATCH, RETENTION_MILLIS};
use assay_platform::db::{
    DatabaseError, PartitionedTable, ensure_monthly_partitions, idempotency, static_sql,
};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{Array, BigInt, SmallInt, Text, Uuid as SqlUuid};
use uuid::Uuid;

use super::sequences;
use crate::domain::evaluation_row::{EvaluationRow, newest_of_each_ticket};
use crate::store::progress::{
    TARGET_AND_WATERMARK, TargetAndWatermark, group_by_organization, new_rows, postgres_placeholders,
};
use crate::store::{CONSUMER, ReceivedRow};

/// Replaces a row under the rule of `EvaluationRow::is_newer_than`.
const UPSERT: &str = "
    INSERT INTO evaluation_rows (ticket_id, organization_id, conversation_started_at, evaluated_at, evaluation_id,
                                 columns_version, axis_line, audit_line)
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8)
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

/// Partitions created in advance: enough time to notice when maintenance fails.
const MONTHS_AHEAD: u32 = 3;
const EVALUATION_ROWS: PartitionedTable = PartitionedTable { name: "evaluation_rows", key: "ticket_id" };

pub(super) fn record(
    connection: &mut PgConnection,
    received: Vec<ReceivedRow>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    connection.transaction(|connection| {
        let ids: Vec<_> = received.iter().map(|received| received.event_id).collect();
        let new = inbox::record(connection, CONSUMER, &ids, now)?;
        let received = new_rows(received, &new);
        let sequences_by_organization = group_by_organization(received.iter());
        let rows = received.into_iter().map(|received| received.row).collect();
        upsert(connection, &newest_of_each_ticket(rows))?;
        sequences_by_organization.into_iter().try_for_each(|(organization, sequences)| {
            sequences::record(connection, organization, &sequences, now)
        })
    })
}

pub(super) fn prune(connection: &mut PgConnection, now: Timestamp) -> Result<usize, DatabaseError> {
    let forgotten = inbox::prune(connection, now.plus_millis(-RETENTION_MILLIS), PRUNE_BATCH)?;
    Ok(forgotten + idempotency::prune(connection, now)?)
}

pub(super) fn ensure_partitions(connection: &mut PgConnection, now: Timestamp) -> Result<(), DatabaseError> {
    ensure_monthly_partitions(connection, EVALUATION_ROWS, now, MONTHS_AHEAD)
}

pub(super) fn lag(connection: &mut PgConnection, id: ExportId) -> Result<Option<i64>, DatabaseError> {
    let found: TargetAndWatermark = sql_query(postgres_placeholders(TARGET_AND_WATERMARK))
        .bind::<SqlUuid, _>(id.as_uuid())
        .get_result(connection)?;
    Ok(found.lag())
}

fn upsert(connection: &mut PgConnection, rows: &[EvaluationRow]) -> Result<(), DatabaseError> {
    if rows.is_empty() {
        return Ok(());
    }
    let ids = |of: fn(&EvaluationRow) -> Uuid| rows.iter().map(of).collect::<Vec<_>>();
    let numbers = |of: fn(&EvaluationRow) -> i64| rows.iter().map(of).collect::<Vec<_>>();
    let texts = |of: fn(&EvaluationRow) -> &str| rows.iter().map(of).collect::<Vec<_>>();
    static_sql(UPSERT)
        .bind::<Array<SqlUuid>, _>(ids(|row| row.ticket_id.as_uuid()))
        .bind::<Array<SqlUuid>, _>(ids(|row| row.organization_id.as_uuid()))
        .bind::<Array<BigInt>, _>(numbers(|row| row.conversation_started_at.as_millis()))
        .bind::<Array<BigInt>, _>(numbers(|row| row.evaluated_at.as_millis()))
        .bind::<Array<SqlUuid>, _>(ids(|row| row.evaluation_id.as_uuid()))
        .bind::<Array<SmallInt>, _>(rows.iter().map(|row| row.columns_version).collect::<Vec<_>>())
        .bind::<Array<Text>, _>(texts(|row| &row.axis_line))
        .bind::<Array<Text>, _>(texts(|row| &row.audit_line))
        .execute(connection)?;
    Ok(())
}
