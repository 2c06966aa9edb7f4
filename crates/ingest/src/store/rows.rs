//! Rows as both databases answer them: ids and JSON as text, times as milliseconds.

use std::str::FromStr;

use assay_contracts::conversation::Conversation;
use assay_contracts::event::TicketFacts;
use assay_contracts::ids::{InvalidId, OrganizationId, TicketId};
use assay_contracts::internal::{Transcript, UnreadableTranscript};
use assay_contracts::ticket::Ticket;
use assay_contracts::time::Timestamp;
use assay_platform::db::DatabaseError;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Nullable, Text};
use serde::de::DeserializeOwned;

use crate::domain::{Participant, participants};

/// A ticket in summary form.
#[derive(QueryableByName)]
pub struct TicketRow {
    #[diesel(sql_type = Text)]
    external_id: String,
    #[diesel(sql_type = Nullable<Text>)]
    subject: Option<String>,
    #[diesel(sql_type = BigInt)]
    created_at: i64,
}

/// A whole transcript.
#[derive(QueryableByName)]
pub struct TranscriptRow {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    organization_id: String,
    #[diesel(sql_type = Text)]
    external_id: String,
    #[diesel(sql_type = Text)]
    source: String,
    #[diesel(sql_type = Nullable<Text>)]
    source_account_id: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    subject: Option<String>,
    #[diesel(sql_type = BigInt)]
    started_at: i64,
    #[diesel(sql_type = BigInt)]
    ended_at: i64,
    #[diesel(sql_type = BigInt)]
    created_at: i64,
    #[diesel(sql_type = Text)]
    agents: String,
    #[diesel(sql_type = Text)]
    messages: String,
}

/// A conversation that was removed.
#[derive(QueryableByName)]
pub struct RemovedRow {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    external_id: String,
    #[diesel(sql_type = Text)]
    source: String,
    #[diesel(sql_type = Nullable<Text>)]
    source_account_id: Option<String>,
    #[diesel(sql_type = BigInt)]
    started_at: i64,
    #[diesel(sql_type = BigInt)]
    ended_at: i64,
    #[diesel(sql_type = BigInt)]
    created_at: i64,
    #[diesel(sql_type = Text)]
    agents: String,
    #[diesel(sql_type = Text)]
    messages: String,
}

/// A ticket that was deleted.
#[derive(QueryableByName)]
pub struct DeletionRow {
    #[diesel(sql_type = Text)]
    ticket_id: String,
    #[diesel(sql_type = Text)]
    organization_id: String,
    #[diesel(sql_type = BigInt)]
    deleted_at: i64,
}

impl TicketRow {
    /// A ticket without a subject reads an empty one.
    pub fn into_ticket(self, id: TicketId) -> Ticket {
        Ticket {
            id,
            external_id: self.external_id,
            subject: self.subject.unwrap_or_default(),
            created_at: Timestamp::saturating_from_millis(self.created_at),
        }
    }
}

impl TranscriptRow {
    /// The transcript, or where it came from when it cannot be understood: one such row must not keep its neighbours from
    /// being evaluated. It is logged here.
    pub fn into_transcript(self) -> Result<Result<Transcript, UnreadableTranscript>, DatabaseError> {
        let organization_id = parse_id(&self.organization_id)?;
        let (messages, agents) = (from_json(&self.messages), from_json(&self.agents));
        let is_readable = messages.is_some() && agents.is_some();
        let ticket = TicketFacts {
            id: parse_id(&self.id)?,
            external_id: self.external_id,
            source: self.source,
            source_account_id: self.source_account_id,
            subject: self.subject,
            started_at: Timestamp::saturating_from_millis(self.started_at),
            ended_at: Timestamp::saturating_from_millis(self.ended_at),
            imported_at: Timestamp::saturating_from_millis(self.created_at),
            agents: agents.unwrap_or_default(),
        };
        let Some(messages) = messages.filter(|_| is_readable) else {
            tracing::error!(ticket_id = %ticket.id, "a stored transcript cannot be read: its JSON is not what this release writes");
            return Ok(Err(UnreadableTranscript { organization_id, ticket }));
        };
        let conversation = Conversation {
            ticket_id: ticket.external_id.clone(),
            source: ticket.source.clone(),
            source_account_id: ticket.source_account_id.clone(),
            subject: ticket.subject.clone(),
            messages,
        };
        Ok(Ok(Transcript { organization_id, ticket, conversation }))
    }
}

impl RemovedRow {
    /// The names that the conversation brought; none when it cannot be understood.
    pub fn participants(&self, organization_id: OrganizationId) -> Vec<Participant> {
        let Some(messages) = from_json(&self.messages) else {
            tracing::error!(
                ticket_id = self.id,
                "a removed transcript cannot be read: names that it brought stay"
            );
            return Vec::new();
        };
        let conversation = Conversation {
            ticket_id: self.external_id.clone(),
            source: self.source.clone(),
            source_account_id: self.source_account_id.clone(),
            subject: None,
            messages,
        };
        participants(organization_id, &conversation)
    }

    /// Where it came from, without its subject, which goes with it.
    pub fn into_facts(self) -> Result<TicketFacts, DatabaseError> {
        Ok(TicketFacts {
            id: parse_id(&self.id)?,
            external_id: self.external_id,
            source: self.source,
            source_account_id: self.source_account_id,
            subject: None,
            started_at: Timestamp::saturating_from_millis(self.started_at),
            ended_at: Timestamp::saturating_from_millis(self.ended_at),
            imported_at: Timestamp::saturating_from_millis(self.created_at),
            agents: from_json(&self.agents).unwrap_or_default(),
        })
    }
}

/// Whose tickets were deleted, and when.
pub fn deletion_times(
    rows: Vec<DeletionRow>,
) -> Result<Vec<(OrganizationId, TicketId, Timestamp)>, DatabaseError> {
    rows.into_iter()
        .map(|row| {
            let deleted_at = Timestamp::saturating_from_millis(row.deleted_at);
            Ok((parse_id(&row.organization_id)?, parse_id(&row.ticket_id)?, deleted_at))
        })
        .collect()
}

fn parse_id<T: FromStr<Err = InvalidId>>(text: &str) -> Result<T, DatabaseError> {
    text.parse().map_err(|_| DatabaseError::Corrupt(format!("id `{text}` is no UUID")))
}

/// The text itself is not for the log: customers wrote it.
fn from_json<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}
