//! A stored conversation, as both databases return it.

use assay_contracts::agent::AgentFacts;
use assay_contracts::conversation::{Conversation, Message};
use assay_contracts::event::TicketFacts;
use assay_contracts::internal::{StoredTranscript, TicketReference, TicketWithoutTranscript};
use assay_contracts::ticket::MAX_SUBJECT_CHARS;
use assay_contracts::time::Timestamp;
use assay_contracts::validation::shortened;
use assay_platform::db::StoredId;
use diesel::Queryable;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::domain::{DecompressError, Participant, decompress, participants};

/// The columns of the table, in its order.
#[derive(Queryable)]
pub struct ConversationRow {
    pub id: StoredId,
    pub organization_id: StoredId,
    external_id: String,
    source: String,
    source_account_id: Option<String>,
    subject: Option<String>,
    started_at: i64,
    ended_at: i64,
    created_at: i64,
    /// JSON.
    agents: String,
    /// Compressed JSON.
    packed: Vec<u8>,
}

/// A conversation cannot be read.
#[derive(Debug, thiserror::Error)]
enum UnreadableConversation {
    #[error(transparent)]
    Compressed(#[from] DecompressError),
    #[error("its JSON does not have the expected structure")]
    UnknownJson,
}

impl ConversationRow {
    pub fn reference(&self) -> TicketReference {
        TicketReference { organization_id: self.organization_id.0.into(), ticket_id: self.id.0.into() }
    }

    /// The ticket, without its transcript.
    pub fn into_facts(self) -> TicketWithoutTranscript {
        let organization_id = self.organization_id.0.into();
        let agents = from_json(&self.agents).unwrap_or_default();
        TicketWithoutTranscript { organization_id, ticket: self.into_ticket(agents) }
    }

    /// The transcript, or the facts of the ticket when the transcript cannot be read: a damaged row must not fail the whole
    /// batch. The cause is logged here.
    pub fn into_transcript(self) -> Result<StoredTranscript, Box<TicketWithoutTranscript>> {
        let organization_id = self.organization_id.0.into();
        let content = self.messages_json().and_then(|messages| Ok((messages, from_json(&self.agents)?)));
        let (messages, agents): (Box<RawValue>, Vec<AgentFacts>) = match content {
            Ok(content) => content,
            Err(cause) => {
                tracing::error!(ticket_id = %self.id.0, %cause, "a stored transcript cannot be read");
                return Err(Box::new(self.into_facts()));
            }
        };
        let conversation = self.conversation(self.subject.as_deref().map(short_subject), messages);
        Ok(StoredTranscript { organization_id, ticket: self.into_ticket(agents), conversation })
    }

    /// The display names in the conversation; none when its messages cannot be read.
    pub fn participants(&self) -> Vec<Participant> {
        let messages = match self.messages() {
            Ok(messages) => messages,
            Err(cause) => {
                tracing::error!(
                    ticket_id = %self.id.0,
                    %cause,
                    "a removed transcript cannot be read: its display names are kept"
                );
                return Vec::new();
            }
        };
        participants(self.organization_id.0.into(), &self.conversation(None, messages))
    }

    /// The ticket without its subject, which is removed with the conversation.
    pub fn into_removed_ticket(self) -> TicketFacts {
        TicketFacts { subject: None, ..self.into_facts().ticket }
    }

    fn conversation<M>(&self, subject: Option<String>, messages: M) -> Conversation<M> {
        Conversation {
            ticket_id: self.external_id.clone(),
            source: self.source.clone(),
            source_account_id: self.source_account_id.clone(),
            subject,
            messages,
        }
    }

    fn into_ticket(self, agents: Vec<AgentFacts>) -> TicketFacts {
        TicketFacts {
            id: self.id.0.into(),
            external_id: self.external_id,
            source: self.source,
            source_account_id: self.source_account_id,
            subject: self.subject.as_deref().map(short_subject),
            started_at: Timestamp::saturating_from_millis(self.started_at),
            ended_at: Timestamp::saturating_from_millis(self.ended_at),
            imported_at: Timestamp::saturating_from_millis(self.created_at),
            agents: AgentFacts::bounded(agents),
        }
    }

    /// The stored JSON of the messages. It is not deserialized into messages: its checksum proves that it is unchanged.
    fn messages_json(&self) -> Result<Box<RawValue>, UnreadableConversation> {
        RawValue::from_string(decompress(&self.packed)?).map_err(|_| UnreadableConversation::UnknownJson)
    }

    fn messages(&self) -> Result<Vec<Message>, UnreadableConversation> {
        from_json(&decompress(&self.packed)?)
    }
}

fn short_subject(subject: &str) -> String {
    shortened(subject, MAX_SUBJECT_CHARS)
}

/// The text itself must not be logged: it is customer data.
fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, UnreadableConversation> {
    serde_json::from_str(text).map_err(|_| UnreadableConversation::UnknownJson)
}
