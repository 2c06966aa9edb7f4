//! An export job: `pending → running → complete | failed`, nothing else (specification, section "Evaluation export
//! status"). The database refuses any other step.

use assay_contracts::export::{Export, ExportFilters, ExportFormat, ExportKind, ExportStatus, NewExport};
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::time::Timestamp;

/// A job and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The job; also the name of its file.
    pub id: ExportId,
    /// The tenant.
    pub organization_id: OrganizationId,
    /// What is exported.
    pub kind: ExportKind,
    /// The filters, as sent.
    pub filters: ExportFilters,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last moved, heartbeats included.
    pub updated_at: Timestamp,
    /// Where it stands.
    pub state: JobState,
}

/// Where a job stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// Queued.
    Pending,
    /// A worker writes the file, or wrote it and will be followed by another.
    Running,
    /// The file is there, until its retention time has passed.
    Complete(StoredFile),
    /// It failed for good.
    Failed {
        /// Why, for people.
        message: String,
    },
}

/// A file in the object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// Its key.
    pub object_key: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of its content, lower-case hexadecimal.
    pub sha256: String,
    /// From this moment on it is no longer given out.
    pub expires_at: Timestamp,
}

impl Job {
    /// A new job.
    pub fn new(id: ExportId, organization_id: OrganizationId, export: &NewExport, now: Timestamp) -> Self {
        Self {
            id,
            organization_id,
            kind: export.kind,
            filters: export.filters,
            created_at: now,
            updated_at: now,
            state: JobState::Pending,
        }
    }

    /// The file, when there is one that is still kept at `now`.
    pub fn file_at(&self, now: Timestamp) -> Option<&StoredFile> {
        match &self.state {
            JobState::Complete(file) if file.expires_at > now => Some(file),
            _ => None,
        }
    }

    /// The status word.
    pub const fn status(&self) -> ExportStatus {
        match self.state {
            JobState::Pending => ExportStatus::Pending,
            JobState::Running => ExportStatus::Running,
            JobState::Complete(_) => ExportStatus::Complete,
            JobState::Failed { .. } => ExportStatus::Failed,
        }
    }

    /// The job as the specification shows it.
    pub fn into_export(self, download_url: Option<String>) -> Export {
        Export {
            id: self.id,
            kind: self.kind,
            format: ExportFormat::Csv,
            status: self.status(),
            filters: self.filters,
            created_at: self.created_at,
            updated_at: self.updated_at,
            download_url,
            error_message: match self.state {
                JobState::Failed { message } => Some(message),
                _ => None,
            },
        }
    }

    /// The name that a browser saves the file under.
    pub fn file_name(&self) -> String {
        format!("assay-{}-{}.csv", self.kind.as_str(), self.id)
    }
}
