//! Rows as both databases answer them: ids and JSON as text, times as milliseconds.

use assay_contracts::conversation::Conversation;
use assay_contracts::event::TicketFacts;
use assay_contracts::ids::TicketId;
use assay_contracts::internal::Transcript;
use assay_contracts::ticket::Ticket;
use assay_contracts::time::Timestamp;
use assay_platform::db::DatabaseError;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Nullable, Text};
use serde::de::DeserializeOwned;

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
    /// The transcript, unless what is stored cannot be understood: one such row must not keep its neighbours from being
    /// evaluated. It is logged here, and becomes a dead letter of whoever asks for it.
    pub fn readable(self) -> Option<Transcript> {
        match self.into_transcript() {
            Ok(transcript) => Some(transcript),
            Err(error) => {
                tracing::error!(cause = %error, "a stored transcript cannot be read");
                None
            }
        }
    }

    fn into_transcript(self) -> Result<Transcript, DatabaseError> {
        let id = self.id;
        let corrupt = |what: &str| DatabaseError::Corrupt(format!("{what} of conversation {id}"));
        let conversation = Conversation {
            ticket_id: self.external_id.clone(),
            source: self.source.clone(),
            source_account_id: self.source_account_id.clone(),
            subject: self.subject.clone(),
            messages: from_json(&self.messages).ok_or_else(|| corrupt("messages"))?,
        };
        let ticket = TicketFacts {
            id: id.parse().map_err(|_| corrupt("id"))?,
            external_id: self.external_id,
            source: self.source,
            source_account_id: self.source_account_id,
            subject: self.subject,
            started_at: Timestamp::saturating_from_millis(self.started_at),
            ended_at: Timestamp::saturating_from_millis(self.ended_at),
            imported_at: Timestamp::saturating_from_millis(self.created_at),
            agents: from_json(&self.agents).ok_or_else(|| corrupt("agents"))?,
        };
        let organization_id = self.organization_id.parse().map_err(|_| corrupt("organization"))?;
        Ok(Transcript { organization_id, ticket, conversation })
    }
}

/// The text itself is not for the log: customers wrote it.
fn from_json<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}
