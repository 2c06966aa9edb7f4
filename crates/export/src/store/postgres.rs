//! PostgreSQL: workers skip rows that others have locked, rows are inserted as arrays, tables are partitioned by month, and the
//! lines of an export file are read through a cursor.

use std::collections::HashSet;

use assay_contracts::export::ExportKind;
use assay_contracts::ids::TicketId;
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, PartitionedTable, Postgres, maintain_partitions, static_sql};
use diesel::connection::SimpleConnection;
use diesel::pg::PgRowByRowLoadingMode;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{Array, BigInt, Integer, Nullable, SmallInt, Text};
use uuid::Uuid;

use super::conditions::Dialect;
use super::lines::{SelectedLine, select_lines};
use super::{FileSelection, LineSink, SnapshotError};
use crate::domain::evaluation_row::EvaluationRow;

type Connection = diesel::pg::PgConnection;
type Backend = diesel::pg::Pg;
/// Column type of ids.
type Id = diesel::sql_types::Uuid;
/// Reads a result of any length row by row, without holding it in memory.
type RowByRow = PgRowByRowLoadingMode;

// The same source as in `sqlite.rs`: it takes what differs by database from here, through `super`.
#[path = "sql/mod.rs"]
mod sql;

pub(super) use self::sql::*;

const SKIP_LOCKED: &str = "FOR UPDATE OF exports SKIP LOCKED";
const DIALECT: Dialect = Dialect::Postgres;

/// The values of the rows to insert.
const ROW_VALUES: &str = "SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8)";

/// The last condition allows partition pruning.
const REMOVE_OLDER: &str = "
    DELETE FROM evaluation_rows
    WHERE ticket_id = ANY (ARRAY (SELECT ticket_id FROM evaluation_rows WHERE organization_id = $1 AND ticket_id < $2
                                  ORDER BY ticket_id LIMIT $3))
      AND organization_id = $1 AND ticket_id < $2
    RETURNING ticket_id";

const PRUNE_TOMBSTONES: &str = "
    DELETE FROM evaluation_rows
    WHERE ticket_id = ANY (ARRAY (SELECT ticket_id FROM evaluation_rows
                                  WHERE deleted_at IS NOT NULL AND deleted_at < $1 ORDER BY deleted_at LIMIT $2))
      AND deleted_at IS NOT NULL";

/// Partitions created in advance: enough time to notice when maintenance fails.
const MONTHS_AHEAD: i32 = 3;
const EVALUATION_FACTS: PartitionedTable = PartitionedTable { name: "evaluation_facts", key: "ticket_id" };
const EVALUATION_ROWS: PartitionedTable = PartitionedTable { name: "evaluation_rows", key: "ticket_id" };

/// The cursor is planned for reading all rows. Timeouts are long: a fetch may have to sort, and an upload between two fetches may
/// be slow.
const SNAPSHOT_SETTINGS: &str = "
    SET LOCAL cursor_tuple_fraction = 1.0; SET LOCAL statement_timeout = '10min';
    SET LOCAL idle_in_transaction_session_timeout = '10min'";

/// Enough rows to hide the round trip. An aborted export still reads the rest of its current fetch.
const FETCH: &str = "FETCH FORWARD 2000 FROM export_lines";

#[declare_sql_function]
extern "SQL" {
    fn greatest(one: BigInt, other: BigInt) -> BigInt;
}

/// Locks `name` until the end of the transaction: transactions with the same name run one after the other.
fn lock_until_commit(connection: &mut Connection, name: &str) -> Result<(), DatabaseError> {
    static_sql("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))")
        .bind::<Text, _>(name)
        .execute(connection)?;
    Ok(())
}

fn upsert_rows(
    connection: &mut Connection,
    upsert: &'static str,
    rows: &[&EvaluationRow],
) -> Result<HashSet<TicketId>, DatabaseError> {
    if rows.is_empty() {
        return Ok(HashSet::new());
    }
    let ids = |of: fn(&EvaluationRow) -> Uuid| rows.iter().map(|row| of(row)).collect::<Vec<_>>();
    let numbers = |of: fn(&EvaluationRow) -> i64| rows.iter().map(|row| of(row)).collect::<Vec<_>>();
    let texts = |of: fn(&EvaluationRow) -> &str| rows.iter().map(|row| of(row)).collect::<Vec<_>>();
    let written: Vec<TicketRecord> = static_sql(upsert)
        .bind::<Array<Id>, _>(ids(|row| row.ticket_id.as_uuid()))
        .bind::<Array<Id>, _>(ids(|row| row.organization_id.as_uuid()))
        .bind::<Array<BigInt>, _>(numbers(|row| row.conversation_started_at.as_millis()))
        .bind::<Array<BigInt>, _>(numbers(|row| row.evaluated_at.as_millis()))
        .bind::<Array<Id>, _>(ids(|row| row.evaluation_id.as_uuid()))
        .bind::<Array<SmallInt>, _>(rows.iter().map(|row| row.columns_version).collect::<Vec<_>>())
        .bind::<Array<Text>, _>(texts(|row| &row.axis_line))
        .bind::<Array<Text>, _>(texts(|row| &row.audit_line))
        .load(connection)?;
    Ok(written.into_iter().map(|record| record.ticket_id.0.into()).collect())
}

/// Takes one array for each column. Arrays of arrays must have equal lengths, so the terms of a row are the text of an array.
const INSERT_FACTS: &str = "
    INSERT INTO evaluation_facts (ticket_id, organization_id, started_at, ended_at, imported_at, external_id, source,
        source_account_id, subject, subject_words, agents, evaluation_id, evaluated_at, codes, sets, axis,
        resolution_accuracy, interaction_effort, handoff_smoothness, confidence, language, terms)
    SELECT ticket_id, organization_id, started_at, ended_at, imported_at, external_id, source,
        source_account_id, subject, subject_words, agents, evaluation_id, evaluated_at, codes, sets, axis,
        resolution_accuracy, interaction_effort, handoff_smoothness, confidence, language, terms::integer[]
    FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)
        AS facts (ticket_id, organization_id, started_at, ended_at, imported_at, external_id, source,
        source_account_id, subject, subject_words, agents, evaluation_id, evaluated_at, codes, sets, axis,
        resolution_accuracy, interaction_effort, handoff_smoothness, confidence, language, terms)";

fn insert_facts(connection: &mut Connection, facts: &[FactsValues]) -> Result<(), DatabaseError> {
    macro_rules! column {
        ($field:ident) => {
            facts.iter().map(|row| row.$field.clone()).collect::<Vec<_>>()
        };
    }
    let score =
        |number: usize| facts.iter().map(|row| row.scores.map(|scores| scores[number])).collect::<Vec<_>>();
    static_sql(INSERT_FACTS)
        .bind::<Array<Id>, _>(column!(ticket_id))
        .bind::<Array<Id>, _>(column!(organization_id))
        .bind::<Array<BigInt>, _>(column!(started_at))
        .bind::<Array<BigInt>, _>(column!(ended_at))
        .bind::<Array<BigInt>, _>(column!(imported_at))
        .bind::<Array<Text>, _>(column!(external_id))
        .bind::<Array<Text>, _>(column!(source))
        .bind::<Array<Nullable<Text>>, _>(column!(source_account_id))
        .bind::<Array<Text>, _>(column!(subject))
        .bind::<Array<Text>, _>(column!(subject_words))
        .bind::<Array<Text>, _>(column!(agents))
        .bind::<Array<Id>, _>(column!(evaluation_id))
        .bind::<Array<BigInt>, _>(column!(evaluated_at))
        .bind::<Array<Integer>, _>(column!(codes))
        .bind::<Array<BigInt>, _>(column!(sets))
        .bind::<Array<Nullable<SmallInt>>, _>(score(0))
        .bind::<Array<Nullable<SmallInt>>, _>(score(1))
        .bind::<Array<Nullable<SmallInt>>, _>(score(2))
        .bind::<Array<Nullable<SmallInt>>, _>(score(3))
        .bind::<Array<Nullable<SmallInt>>, _>(score(4))
        .bind::<Array<Nullable<Text>>, _>(column!(language))
        .bind::<Array<Text>, _>(column!(terms))
        .execute(connection)?;
    Ok(())
}

/// Runs `read` in one snapshot.
fn read_snapshot<T>(
    connection: &mut Connection,
    read: impl FnOnce(&mut Connection) -> Result<T, DatabaseError>,
) -> Result<T, DatabaseError> {
    connection.build_transaction().repeatable_read().read_only().run(read)
}

pub(super) async fn ensure_partitions(database: &Postgres, now: Timestamp) -> Result<(), DatabaseError> {
    maintain_partitions(database, EVALUATION_ROWS, now, MONTHS_AHEAD).await?;
    maintain_partitions(database, EVALUATION_FACTS, now, MONTHS_AHEAD).await
}

/// Fetches the rows in batches and reads them one by one, so that memory is bounded by one line (ADR 16).
pub(super) fn copy_lines(
    connection: &mut Connection,
    selection: &FileSelection,
    mut sink: LineSink,
) -> Result<u64, SnapshotError> {
    connection.build_transaction().repeatable_read().read_only().run(|connection| {
        connection.batch_execute(SNAPSHOT_SETTINGS)?;
        let (statement, bindings) = select_lines(selection, DIALECT);
        let cursor = format!("DECLARE export_lines NO SCROLL CURSOR FOR {statement}");
        bind_texts(cursor, bindings).execute(connection)?;
        while fetch(connection, selection.kind, &mut sink)? > 0 {}
        sink.finish()
    })
}

/// Returns the number of lines: 0 at the end.
fn fetch(connection: &mut Connection, kind: ExportKind, sink: &mut LineSink) -> Result<u32, SnapshotError> {
    let mut count = 0;
    for line in sql_query(FETCH).load_iter::<SelectedLine, RowByRow>(connection)? {
        let SelectedLine { columns_version, line } = line?;
        sink.push(kind, columns_version, &line)?;
        count += 1;
    }
    Ok(count)
}
