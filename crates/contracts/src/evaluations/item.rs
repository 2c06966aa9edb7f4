//! One row of the list: a ticket, and the evaluation that is shown of it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::filters::ResultStatus;
use crate::agent::AgentFacts;
use crate::conversation::AiTool;
use crate::evaluation::{
    AiInvolvement, AxisBand, ChargeAssessment, ChargeReason, Confidence, Flag, HandoffState, ResolutionBasis,
    ResolutionStatus, ResolvedBy, Score, ScorerKind,
};
use crate::ids::{EvaluationId, TicketId};
use crate::time::Timestamp;

/// A ticket and the evaluation that is shown of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EvaluationItem {
    /// The ticket.
    pub ticket: ItemTicket,
    /// Its evaluation.
    pub evaluation: ItemEvaluation,
}

/// The ticket of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ItemTicket {
    /// Service ticket id.
    #[schema(value_type = String, example = "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11")]
    pub id: TicketId,
    /// The ticket id of the source system.
    #[schema(example = "T-1001")]
    pub external_id: String,
    /// Source of the import.
    #[schema(example = "custom")]
    pub source: String,
    /// Account within the source; absent when the import named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub source_account_id: Option<String>,
    /// Subject, at most 1,000 characters and then `…`; empty when the import had none.
    #[schema(example = "Where is my refund?")]
    pub subject: String,
    /// Timestamp of the first message, epoch milliseconds: the conversation's date.
    #[schema(value_type = i64)]
    pub started_at: Timestamp,
    /// Timestamp of the last message, epoch milliseconds.
    #[schema(value_type = i64)]
    pub ended_at: Timestamp,
    /// When the import was accepted, epoch milliseconds.
    #[schema(value_type = i64)]
    pub imported_at: Timestamp,
    /// The registered AI agents that took part, in order of first appearance.
    pub agents: Vec<AgentFacts>,
}

/// The evaluation of a row. When `status` is `failed`, all fields but `id`, `status` and `evaluated_at` are absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ItemEvaluation {
    /// Evaluation id.
    #[schema(value_type = String)]
    pub id: EvaluationId,
    /// Status of the evaluation.
    pub status: ResultStatus,
    /// Time of the evaluation, epoch milliseconds.
    #[schema(value_type = i64)]
    pub evaluated_at: Timestamp,
    /// AXIS and its dimensions; absent unless `status` is `scored`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub scores: Option<ItemScores>,
    /// Who answered the customer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ai_involvement: Option<AiInvolvement>,
    /// Labels of the AI tools that took part, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ai_tools: Vec<AiTool>,
    /// Whether the issue was solved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub resolution: Option<ResolutionStatus>,
    /// Who solved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub resolved_by: Option<ResolvedBy>,
    /// Basis of the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub basis: Option<ResolutionBasis>,
    /// Whether a vendor's charge is supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub charge: Option<ChargeAssessment>,
    /// Reasons of the charge's assessment, in the order of documentation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charge_reasons: Vec<ChargeReason>,
    /// Outcome of the handoff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub handoff: Option<HandoffState>,
    /// Language of the customer's text, ISO 639-1 or `und`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub language: Option<String>,
    /// Flags, in the order of documentation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Flag>,
    /// Kind of scorer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub scorer: Option<ScorerKind>,
}

/// The scores of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ItemScores {
    /// AXIS, 1.0–5.0.
    #[schema(value_type = f64, minimum = 1.0, maximum = 5.0)]
    pub axis: Score,
    /// The band of the conversation.
    pub band: AxisBand,
    /// Resolution accuracy, 1.0–5.0.
    #[schema(value_type = f64, minimum = 1.0, maximum = 5.0)]
    pub resolution_accuracy: Score,
    /// Interaction effort, 1.0–5.0.
    #[schema(value_type = f64, minimum = 1.0, maximum = 5.0)]
    pub interaction_effort: Score,
    /// Handoff smoothness, 1.0–5.0.
    #[schema(value_type = f64, minimum = 1.0, maximum = 5.0)]
    pub handoff_smoothness: Score,
    /// The lowest confidence of the three dimensions, 0–1.
    #[schema(value_type = f64, minimum = 0.0, maximum = 1.0)]
    pub confidence: Confidence,
}
