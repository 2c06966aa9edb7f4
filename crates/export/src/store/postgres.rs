//! PostgreSQL: workers skip the rows that others lock, rows arrive as arrays, months are partitions, and a cursor reads a file.

use assay_contracts::export::ExportKind;
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, PartitionedTable, maintain_partitions, static_sql};
use diesel::connection::SimpleConnection;
use diesel::pg::PgRowByRowLoadingMode;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{Array, BigInt, SmallInt, Text};
use uuid::Uuid;

use super::lines::{SelectedLine, select_lines};
use super::{LineSink, Selection, SnapshotError};
use crate::domain::evaluation_row::EvaluationRow;

type Connection = diesel::pg::PgConnection;
type Database = assay_platform::db::Postgres;
/// Column type of ids.
type Id = diesel::sql_types::Uuid;

#[path = "sql/mod.rs"]
mod sql;

pub(super) use self::sql::SqlStore;

const SKIP_LOCKED: &str = "FOR UPDATE OF exports SKIP LOCKED";

const ROWS: &str = "SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8)";

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

/// Partitions created in advance: enough time to notice when maintenance fails.
const MONTHS_AHEAD: i32 = 3;
const EVALUATION_ROWS: PartitionedTable = PartitionedTable { name: "evaluation_rows", key: "ticket_id" };

/// Plans the cursor for all of its rows. A fetch may have to sort, and the object store may be slow between two of them.
const SNAPSHOT_SETTINGS: &str = "
    SET LOCAL cursor_tuple_fraction = 1.0; SET LOCAL statement_timeout = '10min';
    SET LOCAL idle_in_transaction_session_timeout = '10min'";

/// Enough rows to hide the round trip. An aborted snapshot reads the rest of one fetch.
const FETCH: &str = "FETCH FORWARD 2000 FROM export_lines";

#[declare_sql_function]
extern "SQL" {
    fn greatest(one: BigInt, other: BigInt) -> BigInt;
}

/// Until the end of the transaction no other one gets past this line with the same `name`.
fn serialize(connection: &mut Connection, name: &str) -> Result<(), DatabaseError> {
    static_sql("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))")
        .bind::<Text, _>(name)
        .execute(connection)?;
    Ok(())
}

fn upsert_rows(
    connection: &mut Connection,
    upsert: &'static str,
    rows: &[&EvaluationRow],
) -> Result<(), DatabaseError> {
    if rows.is_empty() {
        return Ok(());
    }
    let ids = |of: fn(&EvaluationRow) -> Uuid| rows.iter().map(|row| of(row)).collect::<Vec<_>>();
    let numbers = |of: fn(&EvaluationRow) -> i64| rows.iter().map(|row| of(row)).collect::<Vec<_>>();
    let texts = |of: fn(&EvaluationRow) -> &str| rows.iter().map(|row| of(row)).collect::<Vec<_>>();
    static_sql(upsert)
        .bind::<Array<Id>, _>(ids(|row| row.ticket_id.as_uuid()))
        .bind::<Array<Id>, _>(ids(|row| row.organization_id.as_uuid()))
        .bind::<Array<BigInt>, _>(numbers(|row| row.conversation_started_at.as_millis()))
        .bind::<Array<BigInt>, _>(numbers(|row| row.evaluated_at.as_millis()))
        .bind::<Array<Id>, _>(ids(|row| row.evaluation_id.as_uuid()))
        .bind::<Array<SmallInt>, _>(rows.iter().map(|row| row.columns_version).collect::<Vec<_>>())
        .bind::<Array<Text>, _>(texts(|row| &row.axis_line))
        .bind::<Array<Text>, _>(texts(|row| &row.audit_line))
        .execute(connection)?;
    Ok(())
}

async fn ensure_partitions(database: &Database, now: Timestamp) -> Result<(), DatabaseError> {
    maintain_partitions(database, EVALUATION_ROWS, now, MONTHS_AHEAD).await
}

/// Fetches the rows in batches and reads them one by one, so that memory is bounded by one line (ADR 16).
async fn copy_lines(
    database: &Database,
    selection: Selection,
    mut sink: LineSink,
) -> Result<u64, SnapshotError> {
    let read = move |connection: &mut Connection| {
        connection.batch_execute(SNAPSHOT_SETTINGS)?;
        let cursor = format!("DECLARE export_lines NO SCROLL CURSOR FOR {}", select_lines(selection.kind));
        let (from, to) = selection.bounds();
        sql_query(cursor)
            .bind::<Id, _>(selection.organization_id.as_uuid())
            .bind::<BigInt, _>(from)
            .bind::<BigInt, _>(to)
            .execute(connection)?;
        while fetch(connection, selection.kind, &mut sink)? > 0 {}
        sink.finish()
    };
    database
        .run_long(move |connection| connection.build_transaction().repeatable_read().read_only().run(read))
        .await
}

/// Returns the number of lines: 0 at the end.
fn fetch(connection: &mut Connection, kind: ExportKind, sink: &mut LineSink) -> Result<u32, SnapshotError> {
    let mut count = 0;
    for line in sql_query(FETCH).load_iter::<SelectedLine, PgRowByRowLoadingMode>(connection)? {
        let SelectedLine { columns_version, line } = line?;
        sink.push(kind, columns_version, &line)?;
        count += 1;
    }
    Ok(count)
}
