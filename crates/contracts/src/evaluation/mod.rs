//! The evaluation of one conversation: AXIS, the resolution audit, and the evidence for both.
//!
//! The same transcript and scorer version give the same bytes: field order is fixed, scores are whole tenths. This does not
//! hold for evaluations by a judge: a model is not deterministic, and each response has its own latency and cost.

mod audit;
mod axis;
mod score;
mod scorer;
mod ticket_evaluation;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::audit::{
    Charge, ChargeAssessment, ChargeReason, Flag, Handoff, HandoffRequester, HandoffState, Resolution,
    ResolutionBasis, ResolutionStatus, ResolvedBy, Sentiment, SentimentLevel,
};
pub use self::axis::{Axis, AxisBand, Dimension, Dimensions, HandoffDimension, Signal};
pub use self::score::{Confidence, Score};
pub use self::scorer::{FallbackReason, JudgeUse, Scorer, ScorerKind};
pub use self::ticket_evaluation::{TicketEvaluation, UnscoredStatus};

use crate::conversation::AiTool;
pub use crate::named_enum::Named;
use crate::named_enum::named_enum;
use crate::time::Timestamp;

/// Version of this schema; raised with every change that is not an addition.
pub const SCHEMA_VERSION: u32 = 1;

/// Evaluation of one conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Evaluation {
    /// The ticket's id in the source system.
    pub external_ticket_id: String,
    /// Whether AXIS could be given.
    pub status: EvaluationStatus,
    /// Version of this schema.
    pub schema_version: u32,
    /// SHA-256 of the transcript as it was scored, lower-case hexadecimal.
    pub transcript_sha256: String,
    /// Language of the customer's text, ISO 639-1, or `und` when it cannot be determined.
    pub language: String,
    /// Who answered the customer.
    pub ai_involvement: AiInvolvement,
    /// The AI agents that wrote customer-facing messages, in order of first appearance.
    pub ai_tools: Vec<AiToolUse>,
    /// AXIS; `null` when `status` is `not_applicable`.
    pub axis: Option<Axis>,
    /// Whether the customer's issue was solved, and by whom.
    pub resolution: Resolution,
    /// Whether an AI vendor's charge for this conversation is supported.
    pub charge: Charge,
    /// The handoff from AI to human.
    pub handoff: Handoff,
    /// The customer's sentiment.
    pub sentiment: Sentiment,
    /// The customer's effort.
    pub effort: Effort,
    /// Items of the transcript by author.
    pub counts: Counts,
    /// Times and durations from the transcript.
    pub timeline: Timeline,
    /// The quotes that signals and the resolution refer to by index.
    pub evidence: Vec<Evidence>,
    /// Warnings about the transcript or the evaluation.
    pub flags: Vec<Flag>,
    /// The scorer of this evaluation.
    pub scorer: Scorer,
}

named_enum!(
    /// Whether AXIS could be given.
    EvaluationStatus {
        /// AXIS is present.
        Scored = "scored",
        /// No AI message or no customer message: AXIS is `null`, never 0. The audit is still there.
        NotApplicable = "not_applicable",
    }
);

named_enum!(
    /// Who answered the customer.
    AiInvolvement {
        /// AI agents alone.
        AiOnly = "ai_only",
        /// AI agents and human teammates.
        AiAssisted = "ai_assisted",
        /// No AI agent.
        NoAi = "no_ai",
    }
);

/// One AI agent's share of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AiToolUse {
    /// Label of the tool or provider, if known.
    pub ai_tool: Option<AiTool>,
    /// Service agent id, if the author was resolved.
    pub agent_id: Option<String>,
    /// The caller's id of the agent, if known.
    pub agent_external_id: Option<String>,
    /// Customer-facing messages it wrote.
    pub messages: u32,
}

/// The customer's effort.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Effort {
    /// Turns of the customer; consecutive messages are one turn.
    pub customer_turns: u32,
    /// Customer messages that repeat something already written.
    pub repeated_information: u32,
    /// Answers that ask the customer a question back.
    pub clarifications: u32,
}

/// Items of the transcript by author; a comment counts as a comment, whatever its author.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    /// Messages of the customer.
    pub customer: u32,
    /// Messages of AI agents.
    pub ai: u32,
    /// Messages of human teammates.
    pub human: u32,
    /// Internal comments.
    pub comment: u32,
    /// System events.
    pub system: u32,
    /// Items with several unresolved actors.
    pub mixed: u32,
}

/// Times and durations from the transcript; internal comments do not count as replies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Timeline {
    /// Timestamp of the first item.
    #[schema(value_type = i64)]
    pub started_at: Timestamp,
    /// Timestamp of the last item.
    #[schema(value_type = i64)]
    pub ended_at: Timestamp,
    /// Whole seconds from the first to the last item.
    pub duration_seconds: i64,
    /// Whole seconds from the customer's first message to the first reply by AI or human.
    pub first_response_seconds: Option<i64>,
    /// When an AI agent last wrote to the customer.
    #[schema(value_type = Option<i64>)]
    pub last_ai_message_at: Option<Timestamp>,
    /// When the customer last wrote.
    #[schema(value_type = Option<i64>)]
    pub last_customer_message_at: Option<Timestamp>,
    /// Whether the customer wrote after the last AI message; absent without an AI message.
    pub customer_replied_after_last_ai: Option<bool>,
    /// Hours from the last AI message to the end of the transcript, when the customer did not write in between.
    pub observed_silence_hours: Option<f64>,
}

/// An exact quote from one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Evidence {
    /// The message's id in the source system.
    pub message_external_id: String,
    /// Who wrote it.
    pub author_type: crate::conversation::AuthorType,
    /// The exact substring `content[start..end]`.
    pub quote: String,
    /// Byte offset of its beginning in the message's content.
    pub start: usize,
    /// Byte offset of its end, exclusive.
    pub end: usize,
}
