//! On PostgreSQL.

use std::collections::HashSet;

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::{OutgoingEvent, inbox, outbox};
use assay_platform::db::{DatabaseError, PartitionedTable, Postgres, ensure_monthly_partitions};
use assay_platform::runtime::now;
use async_trait::async_trait;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use uuid::Uuid;

use super::schema::postgres::{evaluations, progress};
use super::{CONSUMER, EvaluationStore, NewEvaluation, StoredEvaluation, by_organization, unhandled};

const EVALUATIONS: PartitionedTable = PartitionedTable { name: "evaluations", key: "ticket_id" };
/// Months that are prepared in advance.
const MONTHS_AHEAD: u32 = 2;

pub(super) struct PostgresStore {
    database: Postgres,
}

impl PostgresStore {
    pub(super) fn new(database: Postgres) -> Self {
        Self { database }
    }
}

#[derive(Insertable)]
#[diesel(table_name = evaluations)]
struct Row {
    ticket_id: Uuid,
    id: Uuid,
    organization_id: Uuid,
    status: &'static str,
    document: Option<String>,
    error_message: Option<String>,
    scorer_version: String,
    created_at: i64,
}

#[async_trait]
impl EvaluationStore for PostgresStore {
    async fn record(&self, batch: Vec<NewEvaluation>) -> Result<(), DatabaseError> {
        self.database
            .run(move |connection| connection.transaction(|connection| record(connection, batch)))
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

    async fn evaluated(&self, organization_id: OrganizationId) -> Result<i64, DatabaseError> {
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

    async fn maintain(&self, now: Timestamp) -> Result<(), DatabaseError> {
        let maintain = move |connection: &mut PgConnection| {
            ensure_monthly_partitions(connection, EVALUATIONS, now, MONTHS_AHEAD)?;
            let before = now.plus_millis(-inbox::RETENTION_MILLIS);
            while inbox::forget_postgres(connection, before, inbox::PRUNE_BATCH)? > 0 {}
            Ok(())
        };
        self.database.run(maintain).await
    }
}

fn record(connection: &mut PgConnection, batch: Vec<NewEvaluation>) -> Result<(), DatabaseError> {
    let ids: Vec<_> = batch.iter().map(|evaluation| evaluation.accepted_event_id).collect();
    let fresh = inbox::record_postgres(connection, CONSUMER, &ids, now())?;
    let mut rows = Vec::new();
    let mut events: Vec<(Uuid, OutgoingEvent)> = Vec::new();
    for evaluation in unhandled(batch, fresh) {
        events.push((evaluation.id.as_uuid(), evaluation.evaluated_event));
        rows.push(Row {
            ticket_id: evaluation.ticket_id.as_uuid(),
            id: evaluation.id.as_uuid(),
            organization_id: evaluation.organization_id.as_uuid(),
            status: evaluation.status.as_str(),
            document: evaluation.document,
            error_message: evaluation.error_message,
            scorer_version: evaluation.scorer_version,
            created_at: evaluation.created_at.as_millis(),
        });
    }
    let stored: Vec<(Uuid, Uuid)> = diesel::insert_into(evaluations::table)
        .values(rows)
        .on_conflict_do_nothing()
        .returning((evaluations::id, evaluations::organization_id))
        .get_results(connection)?;
    for (organization, count) in by_organization(stored.iter().map(|(_, organization)| *organization)) {
        diesel::insert_into(progress::table)
            .values((progress::organization_id.eq(organization), progress::evaluated.eq(count)))
            .on_conflict(progress::organization_id)
            .do_update()
            .set(progress::evaluated.eq(progress::evaluated + count))
            .execute(connection)?;
    }
    let stored: HashSet<Uuid> = stored.into_iter().map(|(id, _)| id).collect();
    let events: Vec<OutgoingEvent> =
        events.into_iter().filter(|(id, _)| stored.contains(id)).map(|(_, event)| event).collect();
    outbox::enqueue_postgres(connection, &events)
}
