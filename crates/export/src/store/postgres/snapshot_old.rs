//! Reading the lines of a file.
//!
//! A server-side cursor in one read-only transaction, fetched in batches and read row by row: a line may be long, so
//! that memory is bounded by one line, and a reader that gives up has to wait for the rest of one batch only. `COPY`
//! would be somewhat faster, but diesel's `copy_to` takes whole tables only, and leaves its connection unusable when it
//! is given up half-way.

use assay_platform::db::DatabaseError;
use diesel::connection::SimpleConnection;
use diesel::pg::{PgConnection, PgRowByRowLoadingMode};
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{BigInt, SmallInt, Text, Uuid as SqlUuid};

use assay_contracts::export::ExportKind;

use crate::store::record::bounds;
use crate::store::{LineSink, Selection, SnapshotError};

/// Enough rows to hide the way to the database.
const FETCH: &str = "FETCH FORWARD 2000 FROM export_lines";

/// The file is read to its end, so the plan for all rows is wanted, not the one for the first. The first fetch may
/// have to sort; between two fetches the object store may take its time.
const SETTINGS: &str = "SET LOCAL cursor_tuple_fraction = 1.0; SET LOCAL statement_timeout = '10min'; \
     SET LOCAL idle_in_transaction_session_timeout = '10min'";

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = SmallInt)]
    columns_version: i16,
    #[diesel(sql_type = Text)]
    line: String,
}

pub(super) fn copy_lines(
    connection: &mut PgConnection,
    selection: Selection,
    mut sink: LineSink,
) -> Result<u64, SnapshotError> {
    connection.build_transaction().repeatable_read().read_only().run(|connection| {
        connection.batch_execute(SETTINGS)?;
        declare(connection, &selection)?;
        while fetch(connection, selection.kind, &mut sink)? > 0 {}
        sink.finish()
    })
}

/// Answers how many lines there were; none when the end was reached.
fn fetch(
    connection: &mut PgConnection,
    kind: ExportKind,
    sink: &mut LineSink,
) -> Result<usize, SnapshotError> {
    let mut count = 0;
    for line in sql_query(FETCH).load_iter::<Line, PgRowByRowLoadingMode>(connection)? {
        let line = line?;
        sink.push(kind, line.columns_version, line.line.as_bytes())?;
        count += 1;
    }
    Ok(count)
}

fn declare(connection: &mut PgConnection, selection: &Selection) -> Result<(), DatabaseError> {
    let column = match selection.kind {
        ExportKind::Axis => "axis_line",
        ExportKind::ResolutionAudit => "audit_line",
    };
    let (from, to) = bounds(selection.filters);
    let statement = format!(
        "DECLARE export_lines NO SCROLL CURSOR FOR \
         SELECT columns_version, {column} AS line FROM evaluation_rows \
         WHERE organization_id = $1 AND conversation_started_at >= $2 AND conversation_started_at < $3 \
         ORDER BY conversation_started_at, ticket_id"
    );
    sql_query(statement)
        .bind::<SqlUuid, _>(selection.organization_id.as_uuid())
        .bind::<BigInt, _>(from)
        .bind::<BigInt, _>(to)
        .execute(connection)?;
    Ok(())
}
