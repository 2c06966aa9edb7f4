//! Conversations in PostgreSQL.

mod accept;
mod participants;

use std::collections::HashSet;
use std::sync::Arc;

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::internal::{TicketReference, Transcript};
use assay_contracts::ticket::Ticket;
use assay_contracts::time::Timestamp;
use assay_platform::db::idempotency::prune_postgres;
use assay_platform::db::{DatabaseError, PartitionedTable, Postgres, ensure_monthly_partitions};
use async_trait::async_trait;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{Array, BigInt, Uuid as SqlUuid};
use uuid::Uuid;

use self::accept::accept_batch;
use super::Store;
use super::rows::{TicketRow, TranscriptRow};
use crate::domain::{Import, ImportOutcome};

/// Partitions are made so many months ahead: a service may stand still for long and write at once when it is back.
const MONTHS_AHEAD: u32 = 3;

const CONVERSATIONS: PartitionedTable = PartitionedTable { name: "conversations", key: "id" };

const FIND_TICKET: &str =
    "SELECT external_id, subject, created_at FROM conversations WHERE id = $1 AND organization_id = $2";

const READ_TRANSCRIPTS: &str = "
    SELECT id::text, organization_id::text, external_id, source, source_account_id, subject,
           started_at, ended_at, created_at, agents::text, messages::text
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

    async fn accept_batch(&self, imports: Vec<Arc<Import>>) -> Result<Vec<ImportOutcome>, DatabaseError> {
        self.postgres.run(move |connection| connection.transaction(|tx| accept_batch(tx, &imports))).await
    }

    async fn find_ticket(
        &self,
        organization_id: OrganizationId,
        id: TicketId,
    ) -> Result<Option<Ticket>, DatabaseError> {
        let work = move |connection: &mut PgConnection| -> Result<Option<TicketRow>, DatabaseError> {
            Ok(sql_query(FIND_TICKET)
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
    ) -> Result<Vec<Transcript>, DatabaseError> {
        let work = move |connection: &mut PgConnection| read_transcripts(connection, &tickets);
        self.postgres.run(work).await
    }

    async fn prune(&self, now: Timestamp) -> Result<usize, DatabaseError> {
        self.postgres.run(move |connection| prune_postgres(connection, now)).await
    }

    fn concurrent_writers(&self, wanted: usize) -> usize {
        wanted.max(1)
    }
}

fn read_transcripts(
    connection: &mut PgConnection,
    tickets: &[TicketReference],
) -> Result<Vec<Transcript>, DatabaseError> {
    let ids: Vec<Uuid> = tickets.iter().map(|ticket| ticket.ticket_id.as_uuid()).collect();
    let rows: Vec<TranscriptRow> = sql_query(READ_TRANSCRIPTS)
        .bind::<Array<SqlUuid>, _>(ids)
        .bind::<BigInt, _>(i64::try_from(tickets.len()).unwrap_or(i64::MAX))
        .load(connection)?;
    let wanted: HashSet<&TicketReference> = tickets.iter().collect();
    let transcripts = rows.into_iter().filter_map(TranscriptRow::readable);
    let is_wanted = |transcript: &Transcript| {
        let ticket_id = transcript.ticket.id;
        wanted.contains(&TicketReference { organization_id: transcript.organization_id, ticket_id })
    };
    Ok(transcripts.filter(is_wanted).collect())
}
