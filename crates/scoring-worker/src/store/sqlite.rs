//! SQLite: ids are text, there is one writer at a time, and a statement in process is cheap.

use std::collections::HashSet;

use assay_contracts::ids::EvaluationId;
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, StoredId};
use diesel::prelude::*;

use super::NewEvaluation;

pub(super) type Connection = diesel::sqlite::SqliteConnection;
pub(super) type Database = assay_platform::db::Sqlite;
type IdType = diesel::sql_types::Text;

#[path = "sql/mod.rs"]
#[expect(clippy::duplicate_mod, reason = "one text of statements, compiled for both databases")]
mod sql;
pub(super) use self::sql::SqlStore;

/// Inserts evaluations of tickets that have no row and returns their ids.
fn insert(
    connection: &mut Connection,
    batch: &[NewEvaluation],
) -> Result<HashSet<EvaluationId>, DatabaseError> {
    use self::sql::schema::evaluations;

    let mut ids = HashSet::new();
    for new in batch {
        let evaluated = &new.evaluated;
        let inserted = diesel::insert_into(evaluations::table)
            .values((
                evaluations::ticket_id.eq(StoredId::of(evaluated.ticket.id)),
                evaluations::id.eq(StoredId::of(evaluated.evaluation_id)),
                evaluations::organization_id.eq(StoredId::of(evaluated.organization_id)),
                evaluations::status.eq(new.status.as_str()),
                evaluations::document.eq(new.document()),
                evaluations::error_message.eq(new.error_message()),
                evaluations::scorer_version.eq(&new.scorer_version),
                evaluations::created_at.eq(evaluated.evaluated_at.as_millis()),
            ))
            .on_conflict_do_nothing()
            .execute(connection)?;
        ids.extend((inserted == 1).then_some(evaluated.evaluation_id));
    }
    Ok(ids)
}

/// SQLite has no partitions.
async fn prepare_partitions(_: &Database, _: Timestamp) -> Result<(), DatabaseError> {
    Ok(())
}

async fn maintain_partitions(_: &Database, _: Timestamp) -> Result<(), DatabaseError> {
    Ok(())
}
