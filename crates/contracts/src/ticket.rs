//! Tickets, and the receipts of their imports.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::TicketId;
use crate::time::Timestamp;

/// Most characters of a subject in transcripts, events, lists and files: a subject may be as large as a body. `GET
/// /v1/tickets/{id}` has all of it.
pub const MAX_SUBJECT_CHARS: usize = 1_000;

/// Response to an accepted import (202): it is durable and will be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportReceipt {
    /// Service ticket id.
    #[schema(value_type = String, example = "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11")]
    pub id: TicketId,
    /// The ticket id of the source system.
    #[schema(example = "T-1001")]
    pub external_ticket_id: String,
    /// Source namespace of the import.
    #[schema(example = "custom")]
    pub source: String,
    /// Always `accepted`.
    pub status: ReceiptStatus,
}

/// The only status of a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptStatus {
    /// Stored durably; processed after the response.
    Accepted,
}

/// A ticket in summary form: exactly the documented fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ticket {
    /// Service ticket id.
    #[schema(value_type = String, example = "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11")]
    pub id: TicketId,
    /// The ticket id of the source system.
    #[schema(example = "T-1001")]
    pub external_id: String,
    /// Subject; empty when the import had none.
    #[schema(example = "Where is my refund?")]
    pub subject: String,
    /// When the import was accepted, epoch milliseconds.
    #[schema(value_type = i64, example = 1_763_600_000_000_i64)]
    pub created_at: Timestamp,
}
