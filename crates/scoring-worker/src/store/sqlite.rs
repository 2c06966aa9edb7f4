//! SQLite: ids are text, there is one writer at a time, and a statement in process is cheap.

use std::collections::HashMap;

use assay_contracts::ids::EvaluationId;
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, StoredId, static_sql};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text};

use super::NewEvaluation;

pub(super) type Connection = diesel::sqlite::SqliteConnection;
type IdType = diesel::sql_types::Text;

// The same source as in `postgres.rs`: it takes what differs by database from here, through `super`.
#[path = "sql/mod.rs"]
#[cfg_attr(
    feature = "distributed",
    expect(clippy::duplicate_mod, reason = "the same statements, compiled for both databases")
)]
mod sql;
pub(super) use self::sql::*;

const INSERT: &str = "
    INSERT INTO evaluations (ticket_id, id, organization_id, status, document, error_message, scorer_version, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (ticket_id) DO UPDATE
       SET id = excluded.id, status = excluded.status, document = excluded.document, error_message = excluded.error_message,
           scorer_version = excluded.scorer_version, given_up = FALSE,
           created_at = max(excluded.created_at, evaluations.created_at + 1)
     WHERE evaluations.given_up AND excluded.status <> 'failed'
    RETURNING created_at";

#[derive(QueryableByName)]
struct Inserted {
    #[diesel(sql_type = BigInt)]
    created_at: i64,
}

/// Inserts evaluations of tickets that have no row or were given up, and returns their ids and times: later than those of the
/// failures that they replace.
fn insert(
    connection: &mut Connection,
    batch: &[&NewEvaluation],
) -> Result<HashMap<EvaluationId, Timestamp>, DatabaseError> {
    let mut times = HashMap::new();
    for new in batch {
        let evaluated = &new.evaluated;
        let inserted: Option<Inserted> = static_sql(INSERT)
            .bind::<IdType, _>(StoredId::of(evaluated.ticket.id))
            .bind::<IdType, _>(StoredId::of(evaluated.evaluation_id))
            .bind::<IdType, _>(StoredId::of(evaluated.organization_id))
            .bind::<Text, _>(new.status.as_str())
            .bind::<Nullable<Text>, _>(new.document())
            .bind::<Nullable<Text>, _>(new.error_message())
            .bind::<Text, _>(&new.scorer_version)
            .bind::<BigInt, _>(evaluated.evaluated_at.as_millis())
            .get_result(connection)
            .optional()?;
        let time = inserted.map(|inserted| Timestamp::saturating_from_millis(inserted.created_at));
        times.extend(time.map(|time| (evaluated.evaluation_id, time)));
    }
    Ok(times)
}
