//! PostgreSQL: ids are `uuid`, a batch is one statement, and the table of evaluations is partitioned.

use std::collections::HashMap;

use assay_contracts::ids::EvaluationId;
use assay_contracts::time::Timestamp;
use assay_platform::db::{self, DatabaseError, PartitionedTable, Postgres, static_sql};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Nullable, Text, Uuid as SqlUuid};
use uuid::Uuid;

use super::NewEvaluation;

pub(super) type Connection = diesel::pg::PgConnection;
type IdType = SqlUuid;

// The same source as in `sqlite.rs`: it takes what differs by database from here, through `super`.
#[path = "sql/mod.rs"]
#[expect(clippy::duplicate_mod, reason = "the same statements, compiled for both databases")]
mod sql;
pub(super) use self::sql::*;

const EVALUATIONS: PartitionedTable = PartitionedTable { name: "evaluations", key: "ticket_id" };
/// Partitions created in advance.
const MONTHS_AHEAD: i32 = 2;

const INSERT: &str = "
    INSERT INTO evaluations (ticket_id, id, organization_id, status, document, error_message, scorer_version, created_at)
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (ticket_id) DO UPDATE
       SET id = excluded.id, status = excluded.status, document = excluded.document, error_message = excluded.error_message,
           scorer_version = excluded.scorer_version, given_up = FALSE,
           created_at = greatest(excluded.created_at, evaluations.created_at + 1)
     WHERE evaluations.given_up AND excluded.status <> 'failed'
    RETURNING id, created_at";

#[derive(QueryableByName)]
struct Inserted {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = BigInt)]
    created_at: i64,
}

/// Inserts evaluations of tickets that have no row or were given up, and returns their ids and times: later than those of the
/// failures that they replace.
fn insert(
    connection: &mut Connection,
    batch: &[&NewEvaluation],
) -> Result<HashMap<EvaluationId, Timestamp>, DatabaseError> {
    let ids = |of: fn(&NewEvaluation) -> Uuid| batch.iter().map(|new| of(new)).collect::<Vec<_>>();
    let created_at = batch.iter().map(|new| new.evaluated.evaluated_at.as_millis());
    let inserted: Vec<Inserted> = static_sql(INSERT)
        .bind::<Array<SqlUuid>, _>(ids(|new| new.evaluated.ticket.id.as_uuid()))
        .bind::<Array<SqlUuid>, _>(ids(|new| new.evaluated.evaluation_id.as_uuid()))
        .bind::<Array<SqlUuid>, _>(ids(|new| new.evaluated.organization_id.as_uuid()))
        .bind::<Array<Text>, _>(batch.iter().map(|new| new.status.as_str()).collect::<Vec<_>>())
        .bind::<Array<Nullable<Text>>, _>(batch.iter().map(|new| new.document()).collect::<Vec<_>>())
        .bind::<Array<Nullable<Text>>, _>(batch.iter().map(|new| new.error_message()).collect::<Vec<_>>())
        .bind::<Array<Text>, _>(batch.iter().map(|new| new.scorer_version.as_str()).collect::<Vec<_>>())
        .bind::<Array<BigInt>, _>(created_at.collect::<Vec<_>>())
        .get_results(connection)?;
    let time = |inserted: &Inserted| Timestamp::saturating_from_millis(inserted.created_at);
    Ok(inserted.iter().map(|inserted| (inserted.id.into(), time(inserted))).collect())
}

pub(super) async fn prepare_partitions(database: &Postgres, now: Timestamp) -> Result<(), DatabaseError> {
    db::prepare_partitions(database, EVALUATIONS, now).await
}

pub(super) async fn maintain_partitions(database: &Postgres, now: Timestamp) -> Result<(), DatabaseError> {
    db::maintain_partitions(database, EVALUATIONS, now, MONTHS_AHEAD).await
}
