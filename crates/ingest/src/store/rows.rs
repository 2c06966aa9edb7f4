//! Rows as both databases return them: ids and JSON as text, times as milliseconds.

use std::str::FromStr;

use assay_contracts::conversation::{Conversation, Message};
use assay_contracts::event::TicketFacts;
use assay_contracts::ids::{InvalidId, OrganizationId, TicketId};
use assay_contracts::internal::{StoredConversation, StoredTranscript, UnreadableTranscript};
use assay_contracts::ticket::Ticket;
use assay_contracts::time::Timestamp;
use assay_platform::db::DatabaseError;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Binary, Nullable, Text};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::domain::{DecompressError, Participant, decompress, participants};

#[derive(QueryableByName)]
pub struct TicketRow {
    #[diesel(sql_type = Text)]
    external_id: String,
    #[diesel(sql_type = Nullable<Text>)]
    subject: Option<String>,
    #[diesel(sql_type = BigInt)]
    created_at: i64,
}

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
    #[diesel(sql_type = Nullable<Binary>)]
    packed: Option<Vec<u8>>,
}

/// A deleted or expired conversation.
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
    #[diesel(sql_type = Nullable<Binary>)]
    packed: Option<Vec<u8>>,
}

/// A tombstone.
#[derive(QueryableByName)]
pub struct DeletionRow {
    #[diesel(sql_type = Text)]
    ticket_id: String,
    #[diesel(sql_type = Text)]
    organization_id: String,
    #[diesel(sql_type = BigInt)]
    deleted_at: i64,
}

/// The messages of a row cannot be read.
#[derive(Debug, thiserror::Error)]
enum UnreadableMessages {
    #[error(transparent)]
    Compressed(#[from] DecompressError),
    #[error("its JSON does not have the expected structure")]
    UnknownJson,
}

impl TicketRow {
    /// A missing subject becomes an empty one.
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
    /// The transcript, or its ticket when the messages cannot be read: one damaged row must not keep the others of its batch
    /// from being evaluated. The cause is logged here.
    pub fn into_transcript(self) -> Result<Result<StoredTranscript, UnreadableTranscript>, DatabaseError> {
        let organization_id = parse_id(&self.organization_id)?;
        let (messages, agents) = (self.read_messages(), from_json(&self.agents));
        let is_readable = agents.is_some();
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
        let messages = match messages {
            Ok(messages) if is_readable => messages,
            Ok(_) => return Ok(Err(unreadable(organization_id, ticket, &UnreadableMessages::UnknownJson))),
            Err(error) => return Ok(Err(unreadable(organization_id, ticket, &error))),
        };
        let conversation = StoredConversation {
            ticket_id: ticket.external_id.clone(),
            source: ticket.source.clone(),
            source_account_id: ticket.source_account_id.clone(),
            subject: ticket.subject.clone(),
            messages,
        };
        Ok(Ok(StoredTranscript { organization_id, ticket, conversation }))
    }

    /// Compressed messages are passed on as they are. Those in the older JSON column are validated first: it takes any JSON.
    fn read_messages(&self) -> Result<Box<RawValue>, UnreadableMessages> {
        let json = match &self.packed {
            Some(packed) => decompress(packed)?,
            None => {
                let _: Vec<Message> = from_json(&self.messages).ok_or(UnreadableMessages::UnknownJson)?;
                self.messages.clone()
            }
        };
        RawValue::from_string(json).map_err(|_| UnreadableMessages::UnknownJson)
    }
}

fn unreadable(
    organization_id: OrganizationId,
    ticket: TicketFacts,
    cause: &UnreadableMessages,
) -> UnreadableTranscript {
    tracing::error!(ticket_id = %ticket.id, %cause, "a stored transcript cannot be read");
    UnreadableTranscript { organization_id, ticket }
}

impl RemovedRow {
    /// The display names in the conversation; none when its messages cannot be read.
    pub fn participants(&self, organization_id: OrganizationId) -> Vec<Participant> {
        let messages = match self.read_messages() {
            Ok(messages) => messages,
            Err(cause) => {
                tracing::error!(
                    ticket_id = self.id,
                    %cause,
                    "a removed transcript cannot be read: its display names are kept"
                );
                return Vec::new();
            }
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

    fn read_messages(&self) -> Result<Vec<Message>, UnreadableMessages> {
        let json = self.packed.as_deref().map(decompress).transpose()?;
        from_json(json.as_deref().unwrap_or(&self.messages)).ok_or(UnreadableMessages::UnknownJson)
    }

    /// The ticket without its subject, which is removed with the conversation.
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
    text.parse().map_err(|_| DatabaseError::Corrupt(format!("id `{text}` is not a UUID")))
}

/// The text itself must not be logged: it is customer data.
fn from_json<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}
