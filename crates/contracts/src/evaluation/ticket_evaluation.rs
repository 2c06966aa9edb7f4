//! The response of `GET /v1/tickets/{id}/evaluation`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Evaluation;
use crate::ids::{EvaluationId, TicketId};
use crate::time::Timestamp;

/// The evaluation of a ticket, or why there is none (yet).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum TicketEvaluation {
    /// Scored, or found to be not applicable.
    Done {
        /// Evaluation id.
        #[schema(value_type = String)]
        id: EvaluationId,
        /// Service ticket id.
        #[schema(value_type = String)]
        ticket_id: TicketId,
        /// When the evaluation was made, epoch milliseconds.
        #[schema(value_type = i64)]
        created_at: Timestamp,
        /// The evaluation; its fields are on the same level as the three above.
        #[serde(flatten)]
        evaluation: Box<Evaluation>,
    },
    /// Not evaluated yet, or the evaluation failed for good.
    Unscored {
        /// Service ticket id.
        #[schema(value_type = String)]
        ticket_id: TicketId,
        /// `pending` or `failed`.
        status: UnscoredStatus,
        /// Why it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
}

/// Why there is no evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnscoredStatus {
    /// The evaluation is not finished yet.
    Pending,
    /// The evaluation failed for good.
    Failed,
}
