//! Conversations in PostgreSQL.

mod accept;
mod participants;
mod removal;

use std::sync::Arc;

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::internal::TicketReference;
use assay_contracts::ticket::Ticket;
use assay_contracts::time::Timestamp;
use assay_messaging::outbox::DirectDispatch;
use assay_platform::db::idempotency;
use assay_platform::db::{DatabaseError, PartitionedTable, Postgres, ensure_monthly_partitions, static_sql};
use async_trait::async_trait;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Uuid as SqlUuid};
use uuid::Uuid;

use self::accept::accept_batch;
use super::rows::{TicketRow, TranscriptRow};
use super::{Store, StoredTranscripts};
use crate::domain::{Import, ImportOutcome, RetentionCutoff, TicketDeletion};

/// Months for which partitions are created ahead: a service that was down for weeks can write at once.
const MONTHS_AHEAD: u32 = 3;

const CONVERSATIONS: PartitionedTable = PartitionedTable { name: "conversations", key: "id" };

const FIND_TICKET: &str =
    "SELECT external_id, subject, created_at FROM conversations WHERE id = $1 AND organization_id = $2";

/// A subject may have the size of a body; scoring, events and exports get its first thousand characters.
const READ_TRANSCRIPTS: &str = "
    SELECT id::text, organization_id::text, external_id, source, source_account_id,
           CASE WHEN length(subject) > 1000 THEN substr(subject, 1, 1000) || '…' ELSE subject END AS subject,
           started_at, ended_at, created_at, agents::text, messages::text, packed
    FROM conversations WHERE id = ANY ($1) ORDER BY id LIMIT $2";

pub struct PostgresStore {
    postgres: Postgres,
}

impl PostgresStore {
    pub fn new(postgres: Postgres) -> Self {
        Self { postgres }
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn prepare(&self, now: Timestamp) -> Result<(), DatabaseError> {
        let work = move |connection: &mut PgConnection| {
            ensure_monthly_partitions(connection, CONVERSATIONS, now, MONTHS_AHEAD)
        };
        self.postgres.run(work).await
    }

    async fn accept_batch(
        &self,
        imports: Vec<Arc<Import>>,
        dispatch: DirectDispatch,
    ) -> Result<Vec<ImportOutcome>, DatabaseError> {
        let work = move |connection: &mut PgConnection| {
            connection.transaction(|tx| accept_batch(tx, &imports, dispatch))
        };
        self.postgres.run(work).await
    }

    async fn find_ticket(
        &self,
        organization_id: OrganizationId,
        id: TicketId,
    ) -> Result<Option<Ticket>, DatabaseError> {
        let work = move |connection: &mut PgConnection| -> Result<Option<TicketRow>, DatabaseError> {
            Ok(static_sql(FIND_TICKET)
                .bind::<SqlUuid, _>(id.as_uuid())
                .bind::<SqlUuid, _>(organization_id.as_uuid())
                .get_result(connection)
                .optional()?)
        };
        Ok(self.postgres.run(work).await?.map(|row| row.into_ticket(id)))
    }

    async fn read_transcripts(
        &self,
        tickets: Vec<TicketReference>,
    ) -> Result<StoredTranscripts, DatabaseError> {
        let work = move |connection: &mut PgConnection| read_transcripts(connection, &tickets);
        self.postgres.run(work).await
    }

    async fn delete_ticket(&self, deletion: TicketDeletion) -> Result<bool, DatabaseError> {
        let delete = move |connection: &mut PgConnection| {
            connection.transaction(|tx| removal::delete_ticket(tx, &deletion))
        };
        self.postgres.run(delete).await
    }

    async fn find_deletion(
        &self,
        organization_id: OrganizationId,
        id: TicketId,
    ) -> Result<Option<Timestamp>, DatabaseError> {
        let found = self.postgres.run(move |connection| removal::find_deletions(connection, &[id])).await?;
        Ok(found.into_iter().find(|(of, _, _)| *of == organization_id).map(|(_, _, deleted_at)| deleted_at))
    }

    async fn expire(&self, cutoff: RetentionCutoff, limit: usize) -> Result<usize, DatabaseError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let expire = move |connection: &mut PgConnection| {
            connection.transaction(|tx| removal::expire(tx, cutoff, limit))
        };
        self.postgres.run(expire).await
    }

    async fn forget_deletions(&self, before: Timestamp, limit: usize) -> Result<usize, DatabaseError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.postgres.run(move |connection| removal::forget_deletions(connection, before, limit)).await
    }

    async fn prune(&self, now: Timestamp) -> Result<usize, DatabaseError> {
        self.postgres.run(move |connection| idempotency::prune(connection, now)).await
    }

    fn concurrent_writers(&self, wanted: usize) -> usize {
        wanted.max(1)
    }
}

fn read_transcripts(
    connection: &mut PgConnection,
    tickets: &[TicketReference],
) -> Result<StoredTranscripts, DatabaseError> {
    let ids: Vec<Uuid> = tickets.iter().map(|ticket| ticket.ticket_id.as_uuid()).collect();
    let rows: Vec<TranscriptRow> = static_sql(READ_TRANSCRIPTS)
        .bind::<Array<SqlUuid>, _>(ids)
        .bind::<BigInt, _>(i64::try_from(tickets.len()).unwrap_or(i64::MAX))
        .load(connection)?;
    let found = StoredTranscripts::from_rows(tickets, rows)?;
    // Read after the transcripts, so that a ticket deleted in between is reported as deleted.
    let deletions = removal::find_deletions(connection, &found.missing(tickets))?;
    Ok(found.with_deletions(tickets, &deletions))
}
