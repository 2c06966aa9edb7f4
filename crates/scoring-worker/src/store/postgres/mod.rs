//! The store on PostgreSQL.

mod removal;

use std::collections::HashSet;

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::outbox::{self, DirectDispatch};
use assay_messaging::{OutgoingEvent, inbox};
use assay_platform::db::{DatabaseError, PartitionedTable, Postgres, ensure_monthly_partitions, static_sql};
use assay_platform::runtime::now;
use async_trait::async_trait;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Nullable, Text, Uuid as SqlUuid};
use uuid::Uuid;

use super::schema::postgres::{evaluations, progress};
use super::{
    CONSUMER, DeletedEvaluation, EvaluationStore, NewEvaluation, StoredEvaluation, assign_sequences,
    group_by_organization, new_evaluations,
};

const EVALUATIONS: PartitionedTable = PartitionedTable { name: "evaluations", key: "ticket_id" };
const INSERT: &str = "
    INSERT INTO evaluations (ticket_id, id, organization_id, status, document, error_message, scorer_version, created_at)
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT DO NOTHING
    RETURNING id";
/// Partitions created in advance.
const MONTHS_AHEAD: u32 = 2;

pub(super) struct PostgresStore {
    database: Postgres,
}

impl PostgresStore {
    pub(super) fn new(database: Postgres) -> Self {
        Self { database }
    }
}

#[async_trait]
impl EvaluationStore for PostgresStore {
    async fn record(
        &self,
        batch: Vec<NewEvaluation>,
        dispatch: DirectDispatch,
    ) -> Result<Vec<OutgoingEvent>, DatabaseError> {
        self.database
            .run(move |connection| connection.transaction(|connection| record(connection, batch, dispatch)))
            .await
    }

    async fn find(
        &self,
        organization_id: OrganizationId,
        ticket_id: TicketId,
    ) -> Result<Option<StoredEvaluation>, DatabaseError> {
        let find = move |connection: &mut PgConnection| {
            let found: Option<(Uuid, Option<String>, Option<String>, i64)> = evaluations::table
                .filter(evaluations::ticket_id.eq(ticket_id.as_uuid()))
                .filter(evaluations::organization_id.eq(organization_id.as_uuid()))
                .select((
                    evaluations::id,
                    evaluations::document,
                    evaluations::error_message,
                    evaluations::created_at,
                ))
                .first(connection)
                .optional()?;
            Ok(found.map(|(id, document, error_message, created_at)| StoredEvaluation {
                id: id.into(),
                document,
                error_message,
                created_at: Timestamp::saturating_from_millis(created_at),
            }))
        };
        self.database.run(find).await
    }

    async fn delete(&self, deletions: Vec<DeletedEvaluation>) -> Result<(), DatabaseError> {
        let delete = move |connection: &mut PgConnection| {
            connection.transaction(|connection| removal::delete(connection, deletions))
        };
        self.database.run(delete).await
    }

    async fn finished(&self, tickets: Vec<TicketId>) -> Result<HashSet<TicketId>, DatabaseError> {
        self.database.run(move |connection| removal::finished(connection, &tickets)).await
    }

    async fn remove_older_than(
        &self,
        organization_id: OrganizationId,
        before: TicketId,
        limit: usize,
    ) -> Result<usize, DatabaseError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let remove = move |connection: &mut PgConnection| {
            removal::remove_older_than(connection, organization_id, before, limit)
        };
        self.database.run(remove).await
    }

    async fn prune_tombstones(&self, before: Timestamp, limit: usize) -> Result<usize, DatabaseError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.database.run(move |connection| removal::prune_tombstones(connection, before, limit)).await
    }

    async fn evaluation_count(&self, organization_id: OrganizationId) -> Result<i64, DatabaseError> {
        let find = move |connection: &mut PgConnection| {
            let found = progress::table
                .filter(progress::organization_id.eq(organization_id.as_uuid()))
                .select(progress::evaluated)
                .first(connection)
                .optional()?;
            Ok(found.unwrap_or(0))
        };
        self.database.run(find).await
    }

    async fn ensure_partitions(&self, now: Timestamp) -> Result<(), DatabaseError> {
        let ensure = move |connection: &mut PgConnection| {
            ensure_monthly_partitions(connection, EVALUATIONS, now, MONTHS_AHEAD)
        };
        self.database.run(ensure).await
    }

    async fn prune_inbox(&self, now: Timestamp) -> Result<usize, DatabaseError> {
        let before = now.plus_millis(-inbox::RETENTION_MILLIS);
        let forget =
            move |connection: &mut PgConnection| inbox::prune(connection, before, inbox::PRUNE_BATCH);
        self.database.run(forget).await
    }
}

fn record(
    connection: &mut PgConnection,
    batch: Vec<NewEvaluation>,
    dispatch: DirectDispatch,
) -> Result<Vec<OutgoingEvent>, DatabaseError> {
    let ids: Vec<_> = batch.iter().map(|evaluation| evaluation.source_event_id).collect();
    let fresh = inbox::record(connection, CONSUMER, &ids, now())?;
    let batch = new_evaluations(batch, &fresh);
    let stored = insert(connection, &batch)?;
    let is_stored = |new: &NewEvaluation| stored.contains(&new.evaluated.evaluation_id.as_uuid());
    let mut new: Vec<NewEvaluation> = batch.into_iter().filter(is_stored).collect();
    let announced: Vec<OutgoingEvent> = new.iter_mut().filter_map(|new| new.announced_event.take()).collect();
    let mut events = Vec::with_capacity(stored.len());
    for (organization, evaluated) in group_by_organization(new) {
        let total = add_to_progress(connection, organization, evaluated.len())?;
        events.extend(assign_sequences(evaluated, total)?);
    }
    events.extend(announced);
    outbox::enqueue(connection, &events, dispatch)?;
    Ok(events)
}

/// Returns the ids of the inserted evaluations.
fn insert(connection: &mut PgConnection, batch: &[NewEvaluation]) -> Result<HashSet<Uuid>, DatabaseError> {
    let evaluated = || batch.iter().map(|evaluation| &evaluation.evaluated);
    let inserted: Vec<Inserted> = static_sql(INSERT)
        .bind::<Array<SqlUuid>, _>(
            evaluated().map(|evaluated| evaluated.ticket.id.as_uuid()).collect::<Vec<_>>(),
        )
        .bind::<Array<SqlUuid>, _>(
            evaluated().map(|evaluated| evaluated.evaluation_id.as_uuid()).collect::<Vec<_>>(),
        )
        .bind::<Array<SqlUuid>, _>(
            evaluated().map(|evaluated| evaluated.organization_id.as_uuid()).collect::<Vec<_>>(),
        )
        .bind::<Array<Text>, _>(batch.iter().map(|new| new.status.as_str()).collect::<Vec<_>>())
        .bind::<Array<Nullable<Text>>, _>(batch.iter().map(NewEvaluation::document).collect::<Vec<_>>())
        .bind::<Array<Nullable<Text>>, _>(batch.iter().map(NewEvaluation::error_message).collect::<Vec<_>>())
        .bind::<Array<Text>, _>(batch.iter().map(|new| new.scorer_version.as_str()).collect::<Vec<_>>())
        .bind::<Array<BigInt>, _>(
            evaluated().map(|evaluated| evaluated.evaluated_at.as_millis()).collect::<Vec<_>>(),
        )
        .get_results(connection)?;
    Ok(inserted.into_iter().map(|inserted| inserted.id).collect())
}

#[derive(QueryableByName)]
struct Inserted {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
}

/// Increments the count of an organization and returns it. The row stays locked until the end of the transaction, so that
/// sequences follow the order of commits.
fn add_to_progress(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    more: usize,
) -> Result<i64, DatabaseError> {
    let more = i64::try_from(more).unwrap_or(i64::MAX);
    let total = diesel::insert_into(progress::table)
        .values((progress::organization_id.eq(organization_id.as_uuid()), progress::evaluated.eq(more)))
        .on_conflict(progress::organization_id)
        .do_update()
        .set(progress::evaluated.eq(progress::evaluated + more))
        .returning(progress::evaluated)
        .get_result(connection)?;
    Ok(total)
}
