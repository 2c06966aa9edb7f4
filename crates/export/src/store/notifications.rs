//! `export.finished.v1` events for webhooks, written in the transaction that finishes the job.

use assay_contracts::export::ExportKind;
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::notification::{ExportFinished, ExportOutcome};
use assay_contracts::time::Timestamp;
use assay_messaging::OutgoingEvent;
use assay_platform::db::{DatabaseError, StoredId};
use assay_platform::runtime::new_id;

use crate::domain::lease::{Claim, FinishedFile};

/// Whether finished jobs are announced to webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notifications {
    /// The installation has no webhooks.
    Off,
    On,
}

/// Id, organization and kind of a failed job.
pub(super) type FailedJob = (StoredId, StoredId, String);

impl Notifications {
    pub(super) fn completed_event(
        self,
        claim: &Claim,
        file: &FinishedFile,
        now: Timestamp,
    ) -> Result<Option<OutgoingEvent>, DatabaseError> {
        let outcome = ExportOutcome::Complete {
            rows: file.rows,
            bytes: file.bytes,
            sha256: file.sha256.clone(),
            missing_evaluations: file.missing_evaluations,
        };
        self.event((claim.id, claim.organization_id, claim.kind), outcome, now)
    }

    pub(super) fn failed_event(
        self,
        claim: &Claim,
        message: &str,
        now: Timestamp,
    ) -> Result<Option<OutgoingEvent>, DatabaseError> {
        let outcome = ExportOutcome::Failed { error_message: message.to_owned() };
        self.event((claim.id, claim.organization_id, claim.kind), outcome, now)
    }

    /// The events of jobs that exhausted their attempts.
    pub(super) fn failed_events(
        self,
        jobs: Vec<FailedJob>,
        message: &str,
        now: Timestamp,
    ) -> Result<Vec<OutgoingEvent>, DatabaseError> {
        let mut events = Vec::new();
        for (id, organization_id, kind) in jobs {
            let unknown_kind = || DatabaseError::Corrupt(format!("export {}: unknown kind", id.0));
            let kind = ExportKind::from_name(&kind).ok_or_else(unknown_kind)?;
            let outcome = ExportOutcome::Failed { error_message: message.to_owned() };
            events.extend(self.event((id.0.into(), organization_id.0.into(), kind), outcome, now)?);
        }
        Ok(events)
    }

    fn event(
        self,
        (export_id, organization_id, kind): (ExportId, OrganizationId, ExportKind),
        outcome: ExportOutcome,
        now: Timestamp,
    ) -> Result<Option<OutgoingEvent>, DatabaseError> {
        if self == Self::Off {
            return Ok(None);
        }
        let finished = ExportFinished { organization_id, export_id, kind, finished_at: now, outcome };
        let event = OutgoingEvent::new(new_id(), now, &finished);
        event.map(Some).map_err(|error| DatabaseError::Corrupt(error.to_string()))
    }
}
