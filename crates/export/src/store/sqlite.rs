//! SQLite: there is one writer, so nothing is locked; one statement reads the lines of an export file.

use std::collections::HashSet;

use assay_contracts::ids::TicketId;
use assay_platform::db::{DatabaseError, StoredId, static_sql};
use diesel::Connection as _;
use diesel::connection::DefaultLoadingMode;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Integer, Nullable, SmallInt, Text};

use super::conditions::Dialect;
use super::lines::{SelectedLine, select_lines};
use super::{FileSelection, LineSink, SnapshotError};
use crate::domain::evaluation_row::EvaluationRow;

type Connection = diesel::sqlite::SqliteConnection;
type Backend = diesel::sqlite::Sqlite;
/// Column type of ids.
type Id = Text;
/// The only mode of SQLite, which computes each row as it is read.
type RowByRow = DefaultLoadingMode;

// The same source as in `postgres.rs`: it takes what differs by database from here, through `super`.
#[path = "sql/mod.rs"]
#[cfg_attr(
    feature = "distributed",
    expect(clippy::duplicate_mod, reason = "the same statements, compiled for both databases")
)]
mod sql;

pub(super) use self::sql::*;

/// SQLite has no row locks.
const SKIP_LOCKED: &str = "";
const DIALECT: Dialect = Dialect::Sqlite;

/// The values of the row to insert.
const ROW_VALUES: &str = "VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

const REMOVE_OLDER: &str = "
    DELETE FROM evaluation_rows WHERE ticket_id IN
    (SELECT ticket_id FROM evaluation_rows WHERE organization_id = $1 AND ticket_id < $2 ORDER BY ticket_id LIMIT $3)
    RETURNING ticket_id";

const PRUNE_TOMBSTONES: &str = "
    DELETE FROM evaluation_rows WHERE ticket_id IN
    (SELECT ticket_id FROM evaluation_rows WHERE deleted_at IS NOT NULL AND deleted_at < $1
      ORDER BY deleted_at LIMIT $2)";

#[declare_sql_function]
extern "SQL" {
    #[sql_name = "max"]
    fn greatest(one: BigInt, other: BigInt) -> BigInt;
}

/// There is one writer, so there is nothing to lock.
fn lock_until_commit(_: &mut Connection, _: &str) -> Result<(), DatabaseError> {
    Ok(())
}

fn upsert_rows(
    connection: &mut Connection,
    upsert: &'static str,
    rows: &[&EvaluationRow],
) -> Result<HashSet<TicketId>, DatabaseError> {
    let mut written = HashSet::new();
    for row in rows {
        let record: Option<TicketRecord> = static_sql(upsert)
            .bind::<Id, _>(StoredId::of(row.ticket_id))
            .bind::<Id, _>(StoredId::of(row.organization_id))
            .bind::<BigInt, _>(row.conversation_started_at.as_millis())
            .bind::<BigInt, _>(row.evaluated_at.as_millis())
            .bind::<Id, _>(StoredId::of(row.evaluation_id))
            .bind::<SmallInt, _>(row.columns_version)
            .bind::<Text, _>(&row.axis_line)
            .bind::<Text, _>(&row.audit_line)
            .get_result(connection)
            .optional()?;
        written.extend(record.map(|record| TicketId::from(record.ticket_id.0)));
    }
    Ok(written)
}

const INSERT_FACTS: &str = "
    INSERT INTO evaluation_facts (ticket_id, organization_id, started_at, ended_at, imported_at, external_id, source,
        source_account_id, subject, subject_words, agents, evaluation_id, evaluated_at, codes, sets, axis,
        resolution_accuracy, interaction_effort, handoff_smoothness, confidence, language)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)";

fn insert_facts(connection: &mut Connection, facts: &[FactsValues]) -> Result<(), DatabaseError> {
    for facts in facts {
        let score = |number: usize| facts.scores.map(|scores| scores[number]);
        static_sql(INSERT_FACTS)
            .bind::<Id, _>(facts.ticket_id)
            .bind::<Id, _>(facts.organization_id)
            .bind::<BigInt, _>(facts.started_at)
            .bind::<BigInt, _>(facts.ended_at)
            .bind::<BigInt, _>(facts.imported_at)
            .bind::<Text, _>(&facts.external_id)
            .bind::<Text, _>(&facts.source)
            .bind::<Nullable<Text>, _>(&facts.source_account_id)
            .bind::<Text, _>(&facts.subject)
            .bind::<Text, _>(&facts.subject_words)
            .bind::<Text, _>(&facts.agents)
            .bind::<Id, _>(facts.evaluation_id)
            .bind::<BigInt, _>(facts.evaluated_at)
            .bind::<Integer, _>(facts.codes)
            .bind::<BigInt, _>(facts.sets)
            .bind::<Nullable<SmallInt>, _>(score(0))
            .bind::<Nullable<SmallInt>, _>(score(1))
            .bind::<Nullable<SmallInt>, _>(score(2))
            .bind::<Nullable<SmallInt>, _>(score(3))
            .bind::<Nullable<SmallInt>, _>(score(4))
            .bind::<Nullable<Text>, _>(&facts.language)
            .execute(connection)?;
    }
    Ok(())
}

/// Runs `read` in one snapshot.
fn read_snapshot<T>(
    connection: &mut Connection,
    read: impl FnOnce(&mut Connection) -> Result<T, DatabaseError>,
) -> Result<T, DatabaseError> {
    connection.transaction(read)
}

/// In WAL mode a statement reads a consistent snapshot.
pub(super) fn copy_lines(
    connection: &mut Connection,
    selection: &FileSelection,
    mut sink: LineSink,
) -> Result<u64, SnapshotError> {
    let (statement, bindings) = select_lines(selection, DIALECT);
    for line in bind_texts(statement, bindings).load_iter::<SelectedLine, RowByRow>(connection)? {
        let SelectedLine { columns_version, line } = line?;
        sink.push(selection.kind, columns_version, &line)?;
    }
    sink.finish()
}
