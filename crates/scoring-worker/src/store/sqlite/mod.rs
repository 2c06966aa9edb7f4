//! The store on SQLite.

mod removal;

use std::collections::HashSet;

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::outbox::{self, DirectDispatch};
use assay_messaging::{OutgoingEvent, inbox};
use assay_platform::db::{DatabaseError, Sqlite};
use assay_platform::runtime::now;
use async_trait::async_trait;
use diesel::prelude::*;
use diesel::sqlite::SqliteConnection;
use uuid::Uuid;

use super::schema::sqlite::{evaluations, progress};
use super::{
    CONSUMER, DeletedEvaluation, EvaluationStore, NewEvaluation, StoredEvaluation, assign_sequences,
    group_by_organization, new_evaluations,
};

pub(super) struct SqliteStore {
    database: Sqlite,
}

impl SqliteStore {
    pub(super) fn new(database: Sqlite) -> Self {
        Self { database }
    }
}

#[async_trait]
impl EvaluationStore for SqliteStore {
    async fn record(
        &self,
        batch: Vec<NewEvaluation>,
        dispatch: DirectDispatch,
    ) -> Result<Vec<OutgoingEvent>, DatabaseError> {
        self.database.write(move |connection| record(connection, batch, dispatch)).await
    }

    async fn find(
        &self,
        organization_id: OrganizationId,
        ticket_id: TicketId,
    ) -> Result<Option<StoredEvaluation>, DatabaseError> {
        let find = move |connection: &mut SqliteConnection| {
            let found: Option<(Vec<u8>, Option<String>, Option<String>, i64)> = evaluations::table
                .filter(evaluations::ticket_id.eq(bytes(ticket_id)))
                .filter(evaluations::organization_id.eq(bytes(organization_id)))
                .select((
                    evaluations::id,
                    evaluations::document,
                    evaluations::error_message,
                    evaluations::created_at,
                ))
                .first(connection)
                .optional()?;
            let Some((id, document, error_message, created_at)) = found else { return Ok(None) };
            let id = Uuid::from_slice(&id).map_err(|error| DatabaseError::Corrupt(error.to_string()))?;
            let created_at = Timestamp::saturating_from_millis(created_at);
            Ok(Some(StoredEvaluation { id: id.into(), document, error_message, created_at }))
        };
        self.database.read(find).await
    }

    async fn delete(&self, deletions: Vec<DeletedEvaluation>) -> Result<(), DatabaseError> {
        self.database.write(move |connection| removal::delete(connection, deletions)).await
    }

    async fn finished(&self, tickets: Vec<TicketId>) -> Result<HashSet<TicketId>, DatabaseError> {
        self.database.read(move |connection| removal::finished(connection, &tickets)).await
    }

    async fn remove_older_than(
        &self,
        organization_id: OrganizationId,
        before: TicketId,
        limit: usize,
    ) -> Result<usize, DatabaseError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let remove = move |connection: &mut SqliteConnection| {
            removal::remove_older_than(connection, organization_id, before, limit)
        };
        self.database.write(remove).await
    }

    async fn prune_tombstones(&self, before: Timestamp, limit: usize) -> Result<usize, DatabaseError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.database.write(move |connection| removal::prune_tombstones(connection, before, limit)).await
    }

    async fn evaluation_count(&self, organization_id: OrganizationId) -> Result<i64, DatabaseError> {
        let find = move |connection: &mut SqliteConnection| {
            let found = progress::table
                .filter(progress::organization_id.eq(bytes(organization_id)))
                .select(progress::evaluated)
                .first(connection)
                .optional()?;
            Ok(found.unwrap_or(0))
        };
        self.database.read(find).await
    }

    async fn ensure_partitions(&self, _now: Timestamp) -> Result<(), DatabaseError> {
        // SQLite has no partitions.
        Ok(())
    }

    async fn prune_inbox(&self, now: Timestamp) -> Result<usize, DatabaseError> {
        let before = now.plus_millis(-inbox::RETENTION_MILLIS);
        let forget =
            move |connection: &mut SqliteConnection| inbox::prune(connection, before, inbox::PRUNE_BATCH);
        self.database.write(forget).await
    }
}

fn record(
    connection: &mut SqliteConnection,
    batch: Vec<NewEvaluation>,
    dispatch: DirectDispatch,
) -> Result<Vec<OutgoingEvent>, DatabaseError> {
    let ids: Vec<_> = batch.iter().map(|evaluation| evaluation.source_event_id).collect();
    let fresh = inbox::record(connection, CONSUMER, &ids, now())?;
    let (mut stored, mut announced) = (Vec::new(), Vec::new());
    for mut evaluation in new_evaluations(batch, &fresh) {
        if insert(connection, &evaluation)? {
            announced.extend(evaluation.announced_event.take());
            stored.push(evaluation);
        }
    }
    let mut events = Vec::with_capacity(stored.len());
    for (organization, evaluated) in group_by_organization(stored) {
        let total = add_to_progress(connection, organization, evaluated.len())?;
        events.extend(assign_sequences(evaluated, total)?);
    }
    events.extend(announced);
    outbox::enqueue(connection, &events, dispatch)?;
    Ok(events)
}

/// Returns false when the ticket has a row already.
fn insert(connection: &mut SqliteConnection, evaluation: &NewEvaluation) -> Result<bool, DatabaseError> {
    let evaluated = &evaluation.evaluated;
    let stored = diesel::insert_into(evaluations::table)
        .values((
            evaluations::ticket_id.eq(bytes(evaluated.ticket.id)),
            evaluations::id.eq(bytes(evaluated.evaluation_id)),
            evaluations::organization_id.eq(bytes(evaluated.organization_id)),
            evaluations::status.eq(evaluation.status.as_str()),
            evaluations::document.eq(evaluation.document()),
            evaluations::error_message.eq(evaluation.error_message()),
            evaluations::scorer_version.eq(&evaluation.scorer_version),
            evaluations::created_at.eq(evaluated.evaluated_at.as_millis()),
        ))
        .on_conflict_do_nothing()
        .execute(connection)?;
    Ok(stored == 1)
}

/// Increments the count of an organization and returns it.
fn add_to_progress(
    connection: &mut SqliteConnection,
    organization_id: OrganizationId,
    more: usize,
) -> Result<i64, DatabaseError> {
    let more = i64::try_from(more).unwrap_or(i64::MAX);
    let total = diesel::insert_into(progress::table)
        .values((progress::organization_id.eq(bytes(organization_id)), progress::evaluated.eq(more)))
        .on_conflict(progress::organization_id)
        .do_update()
        .set(progress::evaluated.eq(progress::evaluated + more))
        .returning(progress::evaluated)
        .get_result(connection)?;
    Ok(total)
}

fn bytes(id: impl Into<Uuid>) -> Vec<u8> {
    id.into().as_bytes().to_vec()
}
