//! An export job: `pending → running → complete | failed`. A database trigger refuses any other transition.

use assay_contracts::export::{
    Export, ExportFilters, ExportFormat, ExportKind, ExportStatus, FileStatus, NewExport,
};
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Also part of the file name.
    pub id: ExportId,
    pub organization_id: OrganizationId,
    pub kind: ExportKind,
    pub filters: ExportFilters,
    pub created_at: Timestamp,
    /// Last state change or renewal of the lease.
    pub updated_at: Timestamp,
    pub state: JobState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// Queued.
    Pending,
    /// A worker writes the file, or the next attempt is pending.
    Running,
    /// The file exists until it expires.
    Complete(StoredFile),
    /// Failed permanently.
    Failed {
        /// Message for the user.
        message: String,
    },
}

/// A file in the object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    pub object_key: String,
    pub bytes: u64,
    /// Lower-case hexadecimal.
    pub sha256: String,
    /// Downloads are refused from this moment on; [`Timestamp::MAX`]: kept forever.
    pub expires_at: Timestamp,
    /// Evaluations that had not arrived when it was written; `None`: they were not counted.
    pub missing_evaluations: Option<u64>,
}

impl StoredFile {
    fn status_at(&self, now: Timestamp) -> FileStatus {
        if self.expires_at > now { FileStatus::Available } else { FileStatus::Expired }
    }
}

impl Job {
    pub fn new(id: ExportId, organization_id: OrganizationId, export: &NewExport, now: Timestamp) -> Self {
        Self {
            id,
            organization_id,
            kind: export.kind,
            filters: export.filters.clone(),
            created_at: now,
            updated_at: now,
            state: JobState::Pending,
        }
    }

    /// The file, unless it has expired at `now`.
    pub fn file_at(&self, now: Timestamp) -> Option<&StoredFile> {
        match &self.state {
            JobState::Complete(file) if file.status_at(now) == FileStatus::Available => Some(file),
            _ => None,
        }
    }

    pub const fn status(&self) -> ExportStatus {
        match self.state {
            JobState::Pending => ExportStatus::Pending,
            JobState::Running => ExportStatus::Running,
            JobState::Complete(_) => ExportStatus::Complete,
            JobState::Failed { .. } => ExportStatus::Failed,
        }
    }

    /// The public representation at `now`.
    pub fn into_export(self, download_url: Option<String>, now: Timestamp) -> Export {
        let file = match &self.state {
            JobState::Complete(file) => Some(file),
            _ => None,
        };
        Export {
            id: self.id,
            kind: self.kind,
            format: ExportFormat::Csv,
            status: self.status(),
            filters: self.filters,
            created_at: self.created_at,
            updated_at: self.updated_at,
            download_url,
            file_status: file.map(|file| file.status_at(now)),
            file_expires_at: file.map(|file| file.expires_at).filter(|at| *at < Timestamp::MAX),
            evaluations_complete: file.map(|file| file.missing_evaluations == Some(0)),
            missing_evaluations: file.and_then(|file| file.missing_evaluations),
            error_message: match self.state {
                JobState::Failed { message } => Some(message),
                _ => None,
            },
        }
    }

    /// File name for `Content-Disposition`.
    pub fn file_name(&self) -> String {
        format!("assay-{}-{}.csv", self.kind.as_str(), self.id)
    }
}
