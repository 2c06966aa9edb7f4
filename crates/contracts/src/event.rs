//! Events between services. Named in the past tense and versioned; a payload of version 1 only gains optional fields.
//!
//! Events carry no transcripts: a consumer that needs one reads it from its owner (ADR 3). The only
//! customer text in events is the subject and the short quotes of an evaluation.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::agent::AgentFacts;
use crate::evaluation::Evaluation;
use crate::export::ExportKind;
use crate::ids::{EvaluationId, ExportId, OrganizationId, TicketId};
use crate::time::Timestamp;

/// A kind of event: its routing key on the bus. A topic that needs a consumer has exactly one queue: the broker can report
/// that an event has no queue, but not that one of two queues is missing (ADR 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Topic {
    /// Routing key.
    pub name: &'static str,
    /// Whether an event without a queue is an error. Informative events may have no consumer.
    pub needs_consumer: bool,
}

/// Payload of an event.
pub trait Event: Serialize + for<'de> Deserialize<'de> {
    /// Topic that it is published to.
    const TOPIC: Topic;
    /// Owning organization.
    fn organization_id(&self) -> OrganizationId;
}

/// Makes a type with the field `organization_id` the payload of a topic.
macro_rules! event {
    ($payload:ident, $topic:literal, needs_consumer: $needs_consumer:literal) => {
        impl $crate::event::Event for $payload {
            const TOPIC: $crate::event::Topic =
                $crate::event::Topic { name: $topic, needs_consumer: $needs_consumer };

            fn organization_id(&self) -> $crate::ids::OrganizationId {
                self.organization_id
            }
        }
    };
}

pub(crate) use event;

/// A conversation was stored and is to be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationAccepted {
    /// Owning organization.
    pub organization_id: OrganizationId,
    /// The accepted import.
    pub ticket_id: TicketId,
    /// When it was accepted.
    pub accepted_at: Timestamp,
}

event!(ConversationAccepted, "conversation.accepted.v1", needs_consumer: true);

/// A conversation was evaluated, or its evaluation failed for good. `E = Box<RawValue>` publishes an evaluation that is
/// already serialized; the JSON is the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationEvaluated<E = Box<Evaluation>> {
    /// Owning organization.
    pub organization_id: OrganizationId,
    /// The conversation and where it came from.
    pub ticket: TicketFacts,
    /// Id of the evaluation.
    pub evaluation_id: EvaluationId,
    /// Time of the evaluation.
    pub evaluated_at: Timestamp,
    /// The result.
    pub outcome: EvaluationOutcome<E>,
    /// Sequence number among the evaluations of the organization in commit order: 1, 2, 3, … without gaps. A consumer that has
    /// all events up to a number misses none that was committed before it (ADR 6).
    pub sequence: i64,
}

impl<E: Serialize + DeserializeOwned> Event for ConversationEvaluated<E> {
    const TOPIC: Topic = Topic { name: "conversation.evaluated.v1", needs_consumer: true };

    fn organization_id(&self) -> OrganizationId {
        self.organization_id
    }
}

/// Attributes of a ticket for read models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketFacts {
    /// Service ticket id.
    pub id: TicketId,
    /// The ticket id of the source system.
    pub external_id: String,
    /// Source of the import.
    pub source: String,
    /// Account within the source.
    pub source_account_id: Option<String>,
    /// Subject.
    pub subject: Option<String>,
    /// Timestamp of the first message.
    pub started_at: Timestamp,
    /// Timestamp of the last message.
    pub ended_at: Timestamp,
    /// When the import was accepted.
    pub imported_at: Timestamp,
    /// The registered AI agents that took part, in order of first appearance.
    pub agents: Vec<AgentFacts>,
}

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case", try_from = "OutcomeFields<E>")]
pub enum EvaluationOutcome<E = Box<Evaluation>> {
    /// Evaluated.
    Evaluated {
        /// The evaluation.
        evaluation: E,
    },
    /// It could not be evaluated.
    Failed {
        /// Human-readable cause.
        error_message: String,
    },
}

/// Deserialized form of an outcome: serde would buffer a tagged enum in a tree first.
#[derive(Deserialize)]
struct OutcomeFields<E> {
    status: OutcomeStatus,
    evaluation: Option<E>,
    error_message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum OutcomeStatus {
    Evaluated,
    Failed,
}

impl<E> TryFrom<OutcomeFields<E>> for EvaluationOutcome<E> {
    type Error = &'static str;

    fn try_from(fields: OutcomeFields<E>) -> Result<Self, Self::Error> {
        match fields {
            OutcomeFields { status: OutcomeStatus::Evaluated, evaluation, .. } => {
                Ok(Self::Evaluated { evaluation: evaluation.ok_or("missing field `evaluation`")? })
            }
            OutcomeFields { status: OutcomeStatus::Failed, error_message, .. } => {
                Ok(Self::Failed { error_message: error_message.ok_or("missing field `error_message`")? })
            }
        }
    }
}

/// A ticket was deleted with its transcript: its evaluation must be deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationDeleted {
    /// Owning organization.
    pub organization_id: OrganizationId,
    /// The ticket.
    pub ticket_id: TicketId,
    /// When it was deleted.
    pub deleted_at: Timestamp,
}

event!(ConversationDeleted, "conversation.deleted.v1", needs_consumer: true);

/// Transcripts were deleted at the end of their retention period. The scoring worker knows which of the tickets were never
/// evaluated, and records their evaluations as failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationsExpired {
    /// Owning organization.
    pub organization_id: OrganizationId,
    /// The tickets, without their subjects; at most [`MAX_EXPIRED_TICKETS`].
    pub tickets: Vec<TicketFacts>,
    /// Time of the deletion.
    pub expired_at: Timestamp,
}

/// Maximum number of tickets in one [`ConversationsExpired`].
pub const MAX_EXPIRED_TICKETS: usize = 20;

event!(ConversationsExpired, "conversations.expired.v1", needs_consumer: true);

/// The evaluation of a deleted ticket was deleted, or will never be made: data derived from it must be deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluationDeleted {
    /// Owning organization.
    pub organization_id: OrganizationId,
    /// The ticket.
    pub ticket_id: TicketId,
    /// When the ticket was deleted.
    pub deleted_at: Timestamp,
}

event!(EvaluationDeleted, "evaluation.deleted.v1", needs_consumer: true);

/// An export job was created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportRequested {
    /// Owning organization.
    pub organization_id: OrganizationId,
    /// The job.
    pub export_id: ExportId,
    /// What is exported.
    pub kind: ExportKind,
}

event!(ExportRequested, "export.requested.v1", needs_consumer: true);

/// An AI agent was registered. Informative: needs no consumer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCreated {
    /// Owning organization.
    pub organization_id: OrganizationId,
    /// The agent.
    pub agent: AgentFacts,
    /// When it was registered.
    pub created_at: Timestamp,
}

event!(AgentCreated, "agent.created.v1", needs_consumer: false);

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;

    type RawOutcome = EvaluationOutcome<Box<RawValue>>;

    #[test]
    fn raw_evaluation_keeps_its_bytes() {
        let written = r#"{"status":"evaluated","evaluation":{"score": 4.0, "b":1}}"#;
        let outcome: RawOutcome = serde_json::from_str(written).unwrap();
        assert_eq!(serde_json::to_string(&outcome).unwrap(), written);
    }

    #[test]
    fn failure_round_trips() {
        let failed: EvaluationOutcome =
            EvaluationOutcome::Failed { error_message: "no transcript".to_owned() };
        let written = serde_json::to_value(&failed).unwrap();
        assert_eq!(written, json!({"status": "failed", "error_message": "no transcript"}));
        assert_eq!(serde_json::from_value::<EvaluationOutcome>(written).unwrap(), failed);
    }

    #[test]
    fn outcome_without_the_field_of_its_status_is_refused() {
        for (written, missing) in [
            (r#"{"status":"evaluated","error_message":"x"}"#, "missing field `evaluation`"),
            (r#"{"status":"failed","evaluation":{}}"#, "missing field `error_message`"),
            (r#"{"evaluation":{}}"#, "missing field `status`"),
            (r#"{"status":"lost"}"#, "unknown variant `lost`"),
        ] {
            let error = serde_json::from_str::<RawOutcome>(written).unwrap_err().to_string();
            assert!(error.contains(missing), "{written}: {error}");
        }
    }
}
