//! What the webhooks role is told, so that it can tell those who asked for it (ADR 0020). Events as those of [`crate::event`];
//! nothing that a customer wrote, and nobody's name, is in them.

use serde::{Deserialize, Serialize};

use crate::evaluation::{
    AxisBand, ChargeAssessment, ChargeReason, ResolutionStatus, ResolvedBy, Score, ScorerKind,
};
use crate::event::{Event, Topic};
use crate::export::ExportKind;
use crate::ids::{EvaluationId, ExportId, OrganizationId, TicketId};
use crate::time::Timestamp;

/// A conversation was evaluated, or it is certain that it cannot be. Told of organizations that have a webhook for it, and of
/// all as long as nobody knows which those are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationAnnounced {
    /// The tenant.
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
    /// When it was made.
    pub evaluated_at: Timestamp,
    /// What came out.
    pub outcome: AnnouncedOutcome,
}

/// What came out of an evaluation, in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum AnnouncedOutcome {
    /// With AXIS.
    Scored {
        /// The AXIS score.
        axis_score: Score,
        /// Its band.
        axis_band: AxisBand,
        /// The audit.
        #[serde(flatten)]
        audit: AnnouncedAudit,
    },
    /// Without AXIS, with an audit.
    NotApplicable {
        /// The audit.
        #[serde(flatten)]
        audit: AnnouncedAudit,
    },
    /// Without anything.
    Failed {
        /// Why, for people.
        error_message: String,
    },
}

/// The resolution audit, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnouncedAudit {
    /// Was the customer's issue solved.
    pub resolution_status: ResolutionStatus,
    /// Who solved it.
    pub resolved_by: ResolvedBy,
    /// Whether a vendor's charge is supported.
    pub charge_assessment: ChargeAssessment,
    /// Why it is not simply supported.
    pub charge_reasons: Vec<ChargeReason>,
    /// Who made the evaluation.
    pub scorer: ScorerKind,
}

impl Event for EvaluationAnnounced {
    const TOPIC: Topic = Topic { name: "evaluation.announced.v1", needs_consumer: true };

    fn organization_id(&self) -> OrganizationId {
        self.organization_id
    }
}

/// The ticket of an evaluation was deleted: what was told of it is to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluationRetracted {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// The ticket.
    pub ticket_id: TicketId,
    /// When it was deleted.
    pub deleted_at: Timestamp,
}

impl Event for EvaluationRetracted {
    const TOPIC: Topic = Topic { name: "evaluation.retracted.v1", needs_consumer: true };

    fn organization_id(&self) -> OrganizationId {
        self.organization_id
    }
}

/// An export job came to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportFinished {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// The job.
    pub export_id: ExportId,
    /// What was exported.
    pub kind: ExportKind,
    /// When it ended.
    pub finished_at: Timestamp,
    /// How.
    pub outcome: ExportOutcome,
}

/// How an export job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ExportOutcome {
    /// Its file can be downloaded.
    Complete {
        /// Lines of the file, the header not counted.
        rows: u64,
        /// Size of the file.
        bytes: u64,
        /// SHA-256 of the file, lower-case hexadecimal.
        sha256: String,
    },
    /// There is no file.
    Failed {
        /// Why, for people.
        error_message: String,
    },
}

impl Event for ExportFinished {
    const TOPIC: Topic = Topic { name: "export.finished.v1", needs_consumer: true };

    fn organization_id(&self) -> OrganizationId {
        self.organization_id
    }
}
