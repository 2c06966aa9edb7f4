//! Events between services. Past tense, versioned; a payload of version 1 only ever gains optional fields.
//!
//! Events carry no transcripts: a consumer that needs one asks its owner (ADR 0003). What customers wrote travels only
//! as the subject and the short quotes of an evaluation.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::evaluation::Evaluation;
use crate::export::ExportKind;
use crate::ids::{AgentId, EvaluationId, ExportId, OrganizationId, TicketId};
use crate::time::Timestamp;

/// A kind of event: its routing key on the bus. One that needs a consumer has exactly one queue, because the broker can tell
/// that no queue takes an event, and cannot tell that one of two does not (ADR 0010).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Topic {
    /// Routing key.
    pub name: &'static str,
    /// Whether an event that no queue takes is an error. Informative events may have no consumer.
    pub needs_consumer: bool,
}

/// What an event's payload must say about itself.
pub trait Event: Serialize + for<'de> Deserialize<'de> {
    /// The topic it is published under.
    const TOPIC: Topic;
    /// The tenant it belongs to.
    fn organization_id(&self) -> OrganizationId;
}

/// A conversation is stored and waits for its evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationAccepted {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// The accepted import.
    pub ticket_id: TicketId,
    /// When it was accepted.
    pub accepted_at: Timestamp,
}

impl Event for ConversationAccepted {
    const TOPIC: Topic = Topic { name: "conversation.accepted.v1", needs_consumer: true };

    fn organization_id(&self) -> OrganizationId {
        self.organization_id
    }
}

/// A conversation was evaluated, or it is certain that it cannot be. Who has the evaluation as JSON already tells of it with
/// `E = Box<RawValue>`: what is written is the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationEvaluated<E = Box<Evaluation>> {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// The conversation and where it came from.
    pub ticket: TicketFacts,
    /// Id of the evaluation.
    pub evaluation_id: EvaluationId,
    /// When it was made.
    pub evaluated_at: Timestamp,
    /// The result.
    pub outcome: EvaluationOutcome<E>,
    /// The place among the evaluations of the organization in the order of their commits: 1, 2, 3, … without gaps. Who has
    /// taken in all up to a number misses none that was committed before it (ADR 0006). Absent in events of releases that did
    /// not number them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<i64>,
}

impl<E: Serialize + DeserializeOwned> Event for ConversationEvaluated<E> {
    const TOPIC: Topic = Topic { name: "conversation.evaluated.v1", needs_consumer: true };

    fn organization_id(&self) -> OrganizationId {
        self.organization_id
    }
}

/// What a read model needs to know of a ticket beside its evaluation.
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

/// A registered agent as it was known when the conversation was imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFacts {
    /// Service agent id.
    pub id: AgentId,
    /// The caller's id of the agent.
    pub external_id: String,
    /// Display name.
    pub name: String,
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
        /// Why, for people.
        error_message: String,
    },
}

/// An outcome as it is read: a tagged enum would be read into a tree first, and made of the tree then.
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

/// A ticket was deleted: its transcript is gone, its evaluation must go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationDeleted {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// The ticket.
    pub ticket_id: TicketId,
    /// When it was deleted.
    pub deleted_at: Timestamp,
}

impl Event for ConversationDeleted {
    const TOPIC: Topic = Topic { name: "conversation.deleted.v1", needs_consumer: true };

    fn organization_id(&self) -> OrganizationId {
        self.organization_id
    }
}

/// Transcripts were removed because their period has passed. Which of them were never evaluated, only the owner of the
/// evaluations knows: those have failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationsExpired {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// The tickets, without their subjects; at most [`MAX_EXPIRED_TICKETS`].
    pub tickets: Vec<TicketFacts>,
    /// When they were removed.
    pub expired_at: Timestamp,
}

/// At most so many tickets in one [`ConversationsExpired`].
pub const MAX_EXPIRED_TICKETS: usize = 20;

impl Event for ConversationsExpired {
    const TOPIC: Topic = Topic { name: "conversations.expired.v1", needs_consumer: true };

    fn organization_id(&self) -> OrganizationId {
        self.organization_id
    }
}

/// The evaluation of a deleted ticket is gone, or will never be made: what was made of it must go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluationDeleted {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// The ticket.
    pub ticket_id: TicketId,
    /// When the ticket was deleted.
    pub deleted_at: Timestamp,
}

impl Event for EvaluationDeleted {
    const TOPIC: Topic = Topic { name: "evaluation.deleted.v1", needs_consumer: true };

    fn organization_id(&self) -> OrganizationId {
        self.organization_id
    }
}

/// An export job is queued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportRequested {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// The job.
    pub export_id: ExportId,
    /// What is exported.
    pub kind: ExportKind,
}

impl Event for ExportRequested {
    const TOPIC: Topic = Topic { name: "export.requested.v1", needs_consumer: true };

    fn organization_id(&self) -> OrganizationId {
        self.organization_id
    }
}

/// An AI agent was registered. Informative: nobody has to listen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCreated {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// The agent.
    pub agent: AgentFacts,
    /// When it was registered.
    pub created_at: Timestamp,
}

impl Event for AgentCreated {
    const TOPIC: Topic = Topic { name: "agent.created.v1", needs_consumer: false };

    fn organization_id(&self) -> OrganizationId {
        self.organization_id
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;

    type RawOutcome = EvaluationOutcome<Box<RawValue>>;

    #[test]
    fn an_evaluation_travels_byte_for_byte_as_it_was_written() {
        let written = r#"{"status":"evaluated","evaluation":{"score": 4.0, "b":1}}"#;
        let outcome: RawOutcome = serde_json::from_str(written).unwrap();
        assert_eq!(serde_json::to_string(&outcome).unwrap(), written);
    }

    #[test]
    fn a_failure_is_read_as_it_is_written() {
        let failed: EvaluationOutcome =
            EvaluationOutcome::Failed { error_message: "no transcript".to_owned() };
        let written = serde_json::to_value(&failed).unwrap();
        assert_eq!(written, json!({"status": "failed", "error_message": "no transcript"}));
        assert_eq!(serde_json::from_value::<EvaluationOutcome>(written).unwrap(), failed);
    }

    #[test]
    fn an_outcome_without_what_its_status_promises_is_refused() {
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
