//! Reads the lines of a file: one `COPY` in one read-only transaction.
//!
//! `COPY` streams without a round trip for each batch, and its binary format needs no quoting: the server keeps reading while
//! we write. The statement takes no bind values, so they are settings of the transaction. When the reader aborts, the
//! statement is cancelled; otherwise the connection would have to read the remaining rows.

use assay_contracts::export::ExportKind;
use assay_platform::db::DatabaseError;
use diesel::connection::SimpleConnection;
use diesel::pg::{CopyFormat, CopyTarget, Pg, PgConnection};
use diesel::prelude::*;
use diesel::query_builder::AstPass;
use diesel::sql_query;
use diesel::sql_types::{Integer, SmallInt, Text};

use super::copied_lines::read_lines;
use super::schema::evaluation_rows;
use crate::store::record::bounds;
use crate::store::{LineSink, Selection, SnapshotError};

/// All rows are one statement, and the object store may be slow.
const LIMITS: &str =
    "SET LOCAL statement_timeout = '12h'; SET LOCAL idle_in_transaction_session_timeout = '10min'";

const BEGIN: &str = "
    SELECT pg_backend_pid() AS backend, set_config('assay_export.organization_id', $1, true),
           set_config('assay_export.started_from', $2, true), set_config('assay_export.started_before', $3, true)";

/// Uses the settings of [`BEGIN`].
const SELECTED: &str = " AS line FROM evaluation_rows \
     WHERE organization_id = current_setting('assay_export.organization_id')::uuid \
       AND conversation_started_at >= current_setting('assay_export.started_from')::bigint \
       AND conversation_started_at < current_setting('assay_export.started_before')::bigint \
     ORDER BY conversation_started_at, ticket_id)";

#[derive(QueryableByName)]
struct Begun {
    #[diesel(sql_type = Integer)]
    backend: i32,
}

/// Calls `cancel` with the backend pid of the connection when the snapshot is aborted.
pub(super) fn copy_lines(
    connection: &mut PgConnection,
    selection: Selection,
    mut sink: LineSink,
    cancel: impl FnOnce(i32),
) -> Result<u64, SnapshotError> {
    connection.build_transaction().repeatable_read().read_only().run(|connection| {
        let backend = begin(connection, &selection)?;
        let copied = match selection.kind {
            ExportKind::Axis => copy(connection, AxisLines, selection.kind, &mut sink),
            ExportKind::ResolutionAudit => copy(connection, AuditLines, selection.kind, &mut sink),
        };
        if let Err(SnapshotError::Abandoned | SnapshotError::Columns(_)) = copied {
            cancel(backend);
        }
        copied?;
        sink.finish()
    })
}

/// Cancels the statement of another connection of the same database role.
pub(super) fn cancel(connection: &mut PgConnection, backend_pid: i32) -> Result<(), DatabaseError> {
    sql_query("SELECT pg_cancel_backend($1)").bind::<Integer, _>(backend_pid).execute(connection)?;
    Ok(())
}

fn begin(connection: &mut PgConnection, selection: &Selection) -> Result<i32, DatabaseError> {
    connection.batch_execute(LIMITS)?;
    let (from, before) = bounds(selection.filters);
    let begun: Begun = sql_query(BEGIN)
        .bind::<Text, _>(selection.organization_id.to_string())
        .bind::<Text, _>(from.to_string())
        .bind::<Text, _>(before.to_string())
        .get_result(connection)?;
    Ok(begun.backend)
}

fn copy(
    connection: &mut PgConnection,
    lines: impl CopyTarget,
    kind: ExportKind,
    sink: &mut LineSink,
) -> Result<(), SnapshotError> {
    let stream = diesel::copy_to(lines).with_format(CopyFormat::Binary).load_raw(connection)?;
    read_lines(stream, |version, line| sink.push(kind, version, line))
}

/// Custom targets: diesel copies only whole tables.
struct AxisLines;
struct AuditLines;

impl CopyTarget for AxisLines {
    type Table = evaluation_rows::table;
    type SqlType = (SmallInt, Text);

    fn walk_target(mut pass: AstPass<'_, '_, Pg>) -> QueryResult<()> {
        pass.push_sql("(SELECT columns_version, axis_line");
        pass.push_sql(SELECTED);
        Ok(())
    }
}

impl CopyTarget for AuditLines {
    type Table = evaluation_rows::table;
    type SqlType = (SmallInt, Text);

    fn walk_target(mut pass: AstPass<'_, '_, Pg>) -> QueryResult<()> {
        pass.push_sql("(SELECT columns_version, audit_line");
        pass.push_sql(SELECTED);
        Ok(())
    }
}
