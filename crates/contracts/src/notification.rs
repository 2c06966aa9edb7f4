//! Events for the webhooks role, which sends them to subscribed webhooks (ADR 20). Unlike those of [`crate::event`] they
//! have no customer text and no personal names.

use serde::{Deserialize, Serialize};

use crate::evaluation::{
    AxisBand, ChargeAssessment, ChargeReason, ResolutionStatus, ResolvedBy, Score, ScorerKind,
};
use crate::event::event;
use crate::export::ExportKind;
use crate::ids::{EvaluationId, ExportId, OrganizationId, TicketId};
use crate::time::Timestamp;

/// A conversation was evaluated, or its evaluation failed for good. Published for organizations with a subscribed webhook,
/// and for all organizations while the subscribers are unknown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationAnnounced {
    /// Owning organization.
    pub organization_id: OrganizationId,
    /// The conversation.
    pub ticket_id: TicketId,
    /// The ticket id of the source system.
    pub external_ticket_id: String,
    /// Source of the import.
    pub source: String,
    /// Account within the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_account_id: Option<String>,
    /// Id of the evaluation.
    pub evaluation_id: EvaluationId,
    /// Time of the evaluation.
    pub evaluated_at: Timestamp,
    /// Result of the evaluation.
    pub outcome: EvaluationNotificationOutcome,
}

/// Summary of the result of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum EvaluationNotificationOutcome {
    /// Scored with AXIS.
    Scored {
        /// The AXIS score.
        axis_score: Score,
        /// Band of the conversation.
        axis_band: AxisBand,
        /// The audit.
        #[serde(flatten)]
        audit: EvaluationNotificationAudit,
    },
    /// Audited without AXIS.
    NotApplicable {
        /// The audit.
        #[serde(flatten)]
        audit: EvaluationNotificationAudit,
    },
    /// The evaluation failed.
    Failed {
        /// Human-readable cause.
        error_message: String,
    },
}

/// Summary of the resolution audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluationNotificationAudit {
    /// Whether the customer's issue was solved.
    pub resolution_status: ResolutionStatus,
    /// Who solved it.
    pub resolved_by: ResolvedBy,
    /// Whether a vendor's charge is supported.
    pub charge_assessment: ChargeAssessment,
    /// Findings that speak against a charge.
    pub charge_reasons: Vec<ChargeReason>,
    /// Kind of scorer.
    pub scorer: ScorerKind,
}

event!(EvaluationAnnounced, "evaluation.announced.v1", needs_consumer: true);

/// The ticket of an evaluation was deleted: payloads of its webhook messages must be erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluationRetracted {
    /// Owning organization.
    pub organization_id: OrganizationId,
    /// The ticket.
    pub ticket_id: TicketId,
    /// Time of the deletion.
    pub deleted_at: Timestamp,
}

event!(EvaluationRetracted, "evaluation.retracted.v1", needs_consumer: true);

/// An export job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportFinished {
    /// Owning organization.
    pub organization_id: OrganizationId,
    /// The job.
    pub export_id: ExportId,
    /// What was exported.
    pub kind: ExportKind,
    /// Time of the end.
    pub finished_at: Timestamp,
    /// Outcome of the job.
    pub outcome: ExportOutcome,
}

/// Outcome of an export job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ExportOutcome {
    /// Its file can be downloaded.
    Complete {
        /// Rows of the file, without the header.
        rows: u64,
        /// Size of the file.
        bytes: u64,
        /// SHA-256 of the file, lower-case hexadecimal.
        sha256: String,
        /// Evaluations that had not arrived when the file was written; `None`: they could not be counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missing_evaluations: Option<u64>,
    },
    /// There is no file.
    Failed {
        /// Human-readable cause.
        error_message: String,
    },
}

event!(ExportFinished, "export.finished.v1", needs_consumer: true);
