//! SQLite: one writer, so that there is nothing to lock, and one statement reads a file.

use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, StoredId, static_sql};
use diesel::connection::DefaultLoadingMode;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{BigInt, SmallInt, Text};

use super::lines::{SelectedLine, select_lines};
use super::{LineSink, Selection, SnapshotError};
use crate::domain::evaluation_row::EvaluationRow;

type Connection = diesel::sqlite::SqliteConnection;
type Database = assay_platform::db::Sqlite;
/// Column type of ids.
type Id = Text;

#[path = "sql/mod.rs"]
#[expect(clippy::duplicate_mod, reason = "one text of statements, compiled for both databases")]
mod sql;

pub(super) use self::sql::SqlStore;

/// Nothing is locked.
const SKIP_LOCKED: &str = "";

const ROWS: &str = "VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

const REMOVE_OLDER: &str = "
    DELETE FROM evaluation_rows WHERE ticket_id IN
    (SELECT ticket_id FROM evaluation_rows WHERE organization_id = $1 AND ticket_id < $2 ORDER BY ticket_id LIMIT $3)";

const PRUNE_TOMBSTONES: &str = "
    DELETE FROM evaluation_rows WHERE ticket_id IN
    (SELECT ticket_id FROM evaluation_rows WHERE deleted_at IS NOT NULL AND deleted_at < $1
      ORDER BY deleted_at LIMIT $2)";

#[declare_sql_function]
extern "SQL" {
    #[sql_name = "max"]
    fn greatest(one: BigInt, other: BigInt) -> BigInt;
}

/// There is one writer.
fn serialize(_: &mut Connection, _: &str) -> Result<(), DatabaseError> {
    Ok(())
}

fn upsert_rows(
    connection: &mut Connection,
    upsert: &'static str,
    rows: &[&EvaluationRow],
) -> Result<(), DatabaseError> {
    for row in rows {
        static_sql(upsert)
            .bind::<Id, _>(StoredId::of(row.ticket_id))
            .bind::<Id, _>(StoredId::of(row.organization_id))
            .bind::<BigInt, _>(row.conversation_started_at.as_millis())
            .bind::<BigInt, _>(row.evaluated_at.as_millis())
            .bind::<Id, _>(StoredId::of(row.evaluation_id))
            .bind::<SmallInt, _>(row.columns_version)
            .bind::<Text, _>(&row.axis_line)
            .bind::<Text, _>(&row.audit_line)
            .execute(connection)?;
    }
    Ok(())
}

/// SQLite has none.
async fn ensure_partitions(_: &Database, _: Timestamp) -> Result<(), DatabaseError> {
    Ok(())
}

/// In WAL mode a statement reads a consistent snapshot.
async fn copy_lines(
    database: &Database,
    selection: Selection,
    mut sink: LineSink,
) -> Result<u64, SnapshotError> {
    database
        .read(move |connection| {
            let (from, to) = selection.bounds();
            let lines = sql_query(select_lines(selection.kind))
                .bind::<Id, _>(StoredId::of(selection.organization_id))
                .bind::<BigInt, _>(from)
                .bind::<BigInt, _>(to)
                .load_iter::<SelectedLine, DefaultLoadingMode>(connection)?;
            for line in lines {
                let SelectedLine { columns_version, line } = line?;
                sink.push(selection.kind, columns_version, &line)?;
            }
            sink.finish()
        })
        .await
}
