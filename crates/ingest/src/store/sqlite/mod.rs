//! Conversations in SQLite. One statement per row: statements are cheap inside the process, and a batch only saves commits.

mod removal;

use std::sync::Arc;

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::internal::TicketReference;
use assay_contracts::ticket::Ticket;
use assay_contracts::time::Timestamp;
use assay_messaging::outbox::{self, DirectDispatch};
use assay_platform::db::idempotency;
use assay_platform::db::{DatabaseError, Sqlite, static_sql};
use async_trait::async_trait;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Nullable, Text};
use diesel::sqlite::SqliteConnection;

use super::rows::{TicketRow, TranscriptRow};
use super::{Store, StoredTranscripts};
use crate::domain::{Import, ImportOutcome, Participant, RetentionCutoff, TicketDeletion};

/// Inserts nothing when the identity was used before, also by a conversation that was removed since.
const INSERT_CONVERSATION: &str = "
    INSERT INTO conversations (id, organization_id, identity_sha256, external_id, source, source_account_id, subject,
                               started_at, ended_at, created_at, agents, messages, packed)
    SELECT new.* FROM (SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'null', ?) AS new
    WHERE NOT EXISTS (SELECT 1 FROM used_identities WHERE organization_id = ? AND identity_sha256 = ?)
    ON CONFLICT (organization_id, identity_sha256) DO NOTHING";

const FIND_FIRST_TICKET: &str = "
    SELECT id FROM conversations WHERE organization_id = ? AND identity_sha256 = ?
    UNION ALL SELECT ticket_id FROM used_identities WHERE organization_id = ? AND identity_sha256 = ?";

/// A name is replaced by one with a later or equal timestamp.
const UPSERT_NAME: &str = "
    INSERT INTO participants (organization_id, identity_sha256, source, source_account_id, author_type,
                              external_id, name, named_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (organization_id, identity_sha256) DO UPDATE
       SET name = excluded.name, named_at = excluded.named_at
     WHERE participants.named_at <= excluded.named_at";

const FIND_TICKET: &str =
    "SELECT external_id, subject, created_at FROM conversations WHERE id = ? AND organization_id = ?";

/// A subject may have the size of a body; scoring, events and exports get its first thousand characters.
const READ_TRANSCRIPT: &str = "
    SELECT id, organization_id, external_id, source, source_account_id,
           CASE WHEN length(subject) > 1000 THEN substr(subject, 1, 1000) || '…' ELSE subject END AS subject,
           started_at, ended_at, created_at, agents, messages, packed
    FROM conversations WHERE id = ? AND organization_id = ?";

#[derive(QueryableByName)]
struct TicketIdRow {
    #[diesel(sql_type = Text)]
    id: String,
}

impl TicketIdRow {
    fn ticket_id(&self) -> Result<TicketId, DatabaseError> {
        self.id.parse().map_err(|_| DatabaseError::Corrupt(format!("ticket id `{}` is not a UUID", self.id)))
    }
}

pub struct SqliteStore {
    sqlite: Sqlite,
}

impl SqliteStore {
    pub fn new(sqlite: Sqlite) -> Self {
        Self { sqlite }
    }
}

#[async_trait]
impl Store for SqliteStore {
    /// SQLite has no partitions.
    async fn prepare(&self, _now: Timestamp) -> Result<(), DatabaseError> {
        Ok(())
    }

    async fn accept_batch(
        &self,
        imports: Vec<Arc<Import>>,
        dispatch: DirectDispatch,
    ) -> Result<Vec<ImportOutcome>, DatabaseError> {
        self.sqlite.write(move |tx| imports.iter().map(|import| accept(tx, import, dispatch)).collect()).await
    }

    async fn find_ticket(
        &self,
        organization_id: OrganizationId,
        id: TicketId,
    ) -> Result<Option<Ticket>, DatabaseError> {
        let work = move |connection: &mut SqliteConnection| -> Result<Option<TicketRow>, DatabaseError> {
            Ok(static_sql(FIND_TICKET)
                .bind::<Text, _>(id.to_string())
                .bind::<Text, _>(organization_id.to_string())
                .get_result(connection)
                .optional()?)
        };
        Ok(self.sqlite.read(work).await?.map(|row| row.into_ticket(id)))
    }

    async fn read_transcripts(
        &self,
        tickets: Vec<TicketReference>,
    ) -> Result<StoredTranscripts, DatabaseError> {
        let work = move |connection: &mut SqliteConnection| {
            let mut rows = Vec::with_capacity(tickets.len());
            for ticket in &tickets {
                rows.extend(read_transcript(connection, ticket)?);
            }
            let found = StoredTranscripts::from_rows(&tickets, rows)?;
            let deletions = removal::find_deletions(connection, &found.missing(&tickets))?;
            Ok(found.with_deletions(&tickets, &deletions))
        };
        self.sqlite.read(work).await
    }

    async fn delete_ticket(&self, deletion: TicketDeletion) -> Result<bool, DatabaseError> {
        self.sqlite.write(move |tx| removal::delete_ticket(tx, &deletion)).await
    }

    async fn find_deletion(
        &self,
        organization_id: OrganizationId,
        id: TicketId,
    ) -> Result<Option<Timestamp>, DatabaseError> {
        let found = self.sqlite.read(move |connection| removal::find_deletions(connection, &[id])).await?;
        Ok(found.into_iter().find(|(of, _, _)| *of == organization_id).map(|(_, _, deleted_at)| deleted_at))
    }

    async fn expire(&self, cutoff: RetentionCutoff, limit: usize) -> Result<usize, DatabaseError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.sqlite.write(move |tx| removal::expire(tx, cutoff, limit)).await
    }

    async fn forget_deletions(&self, before: Timestamp, limit: usize) -> Result<usize, DatabaseError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.sqlite.write(move |tx| removal::forget_deletions(tx, before, limit)).await
    }

    async fn prune(&self, now: Timestamp) -> Result<usize, DatabaseError> {
        self.sqlite.write(move |tx| idempotency::prune(tx, now)).await
    }

    fn concurrent_writers(&self, _wanted: usize) -> usize {
        1
    }
}

fn accept(
    connection: &mut SqliteConnection,
    import: &Import,
    dispatch: DirectDispatch,
) -> Result<ImportOutcome, DatabaseError> {
    let record = import.record.as_slice();
    let reused = idempotency::store(connection, record, import.accepted_at)?.into_iter().flatten().next();
    if let Some(reused) = reused {
        return Ok(ImportOutcome::KeyReused(reused));
    }
    if insert_conversation(connection, import)? == 0 {
        let keys: Vec<_> = record.iter().map(|record| (record.organization_id, &record.key)).collect();
        idempotency::delete(connection, &keys)?;
        return Ok(ImportOutcome::Duplicate(find_first_ticket(connection, import)?));
    }
    for participant in &import.participants {
        upsert_name(connection, participant)?;
    }
    outbox::enqueue(connection, std::slice::from_ref(&import.event), dispatch)?;
    Ok(ImportOutcome::Accepted)
}

fn insert_conversation(connection: &mut SqliteConnection, import: &Import) -> Result<usize, DatabaseError> {
    Ok(static_sql(INSERT_CONVERSATION)
        .bind::<Text, _>(import.ticket_id.to_string())
        .bind::<Text, _>(import.organization_id.to_string())
        .bind::<Binary, _>(import.identity.as_bytes().as_slice())
        .bind::<Text, _>(&import.external_id)
        .bind::<Text, _>(&import.source)
        .bind::<Nullable<Text>, _>(import.source_account_id.as_deref())
        .bind::<Nullable<Text>, _>(import.subject.as_deref())
        .bind::<BigInt, _>(import.started_at.as_millis())
        .bind::<BigInt, _>(import.ended_at.as_millis())
        .bind::<BigInt, _>(import.accepted_at.as_millis())
        .bind::<Text, _>(&import.agents_json)
        .bind::<Binary, _>(import.messages.as_bytes())
        .bind::<Text, _>(import.organization_id.to_string())
        .bind::<Binary, _>(import.identity.as_bytes().as_slice())
        .execute(connection)?)
}

fn find_first_ticket(connection: &mut SqliteConnection, import: &Import) -> Result<TicketId, DatabaseError> {
    let row: TicketIdRow = static_sql(FIND_FIRST_TICKET)
        .bind::<Text, _>(import.organization_id.to_string())
        .bind::<Binary, _>(import.identity.as_bytes().as_slice())
        .bind::<Text, _>(import.organization_id.to_string())
        .bind::<Binary, _>(import.identity.as_bytes().as_slice())
        .get_result(connection)?;
    row.ticket_id()
}

fn upsert_name(connection: &mut SqliteConnection, named: &Participant) -> Result<(), DatabaseError> {
    static_sql(UPSERT_NAME)
        .bind::<Text, _>(named.organization_id.to_string())
        .bind::<Binary, _>(named.identity.as_slice())
        .bind::<Text, _>(&named.source)
        .bind::<Nullable<Text>, _>(named.source_account_id.as_deref())
        .bind::<Text, _>(named.author_type.as_str())
        .bind::<Text, _>(&named.external_id)
        .bind::<Text, _>(&named.name)
        .bind::<BigInt, _>(named.named_at.as_millis())
        .execute(connection)?;
    Ok(())
}

fn read_transcript(
    connection: &mut SqliteConnection,
    ticket: &TicketReference,
) -> Result<Option<TranscriptRow>, DatabaseError> {
    Ok(static_sql(READ_TRANSCRIPT)
        .bind::<Text, _>(ticket.ticket_id.to_string())
        .bind::<Text, _>(ticket.organization_id.to_string())
        .get_result(connection)
        .optional()?)
}
