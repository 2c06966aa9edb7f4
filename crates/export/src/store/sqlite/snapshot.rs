//! Reads the lines of a file: one statement whose rows are fetched one by one. In WAL mode a statement reads a consistent
//! snapshot.

use assay_contracts::export::ExportKind;
use diesel::connection::DefaultLoadingMode;
use diesel::prelude::*;
use diesel::sqlite::SqliteConnection;

use super::schema::evaluation_rows;
use crate::store::record::{StoredId, bounds};
use crate::store::{LineSink, Selection, SnapshotError};

pub(super) fn copy_lines(
    connection: &mut SqliteConnection,
    selection: Selection,
    mut sink: LineSink,
) -> Result<u64, SnapshotError> {
    let (from, to) = bounds(selection.filters);
    let rows = evaluation_rows::table
        .filter(evaluation_rows::organization_id.eq(StoredId::of(selection.organization_id)))
        .filter(evaluation_rows::conversation_started_at.ge(from))
        .filter(evaluation_rows::conversation_started_at.lt(to))
        .order((evaluation_rows::conversation_started_at, evaluation_rows::ticket_id));
    let version = evaluation_rows::columns_version;
    let lines: Box<dyn Iterator<Item = QueryResult<(i16, String)>> + '_> = match selection.kind {
        ExportKind::Axis => Box::new(
            rows.select((version, evaluation_rows::axis_line))
                .load_iter::<_, DefaultLoadingMode>(connection)?,
        ),
        ExportKind::ResolutionAudit => Box::new(
            rows.select((version, evaluation_rows::audit_line))
                .load_iter::<_, DefaultLoadingMode>(connection)?,
        ),
    };
    for line in lines {
        let (version, line) = line?;
        sink.push(selection.kind, version, line.as_bytes())?;
    }
    sink.finish()
}
