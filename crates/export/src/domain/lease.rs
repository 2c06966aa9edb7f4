//! A worker's hold on a job. It ends by itself, so that a worker that dies hands its job to another.

use assay_contracts::export::{ExportFilters, ExportKind};
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::time::Timestamp;
use uuid::Uuid;

/// The name of one hold: made anew for each claim, so that a worker can tell its own from any later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseOwner(Uuid);

impl LeaseOwner {
    /// The UUID itself, for storage.
    pub const fn as_uuid(&self) -> Uuid {
        self.0
    }
}

impl From<Uuid> for LeaseOwner {
    fn from(value: Uuid) -> Self {
        Self(value)
    }
}

/// A job that a worker holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The job.
    pub id: ExportId,
    /// The tenant.
    pub organization_id: OrganizationId,
    /// What is exported.
    pub kind: ExportKind,
    /// Which evaluations.
    pub filters: ExportFilters,
    /// The hold.
    pub owner: LeaseOwner,
    /// Which claim of the job this is, from 1.
    pub attempt: u32,
    /// Which try this is, from 1: claims that were given back do not count.
    pub try_number: u32,
}

impl Claim {
    /// The key of this attempt's file: no two attempts ever write the same one.
    pub fn object_key(&self) -> String {
        self.object_key_of(self.attempt)
    }

    /// The keys of the attempts before this one.
    pub fn earlier_object_keys(&self) -> Vec<String> {
        (1..self.attempt).map(|attempt| self.object_key_of(attempt)).collect()
    }

    fn object_key_of(&self, attempt: u32) -> String {
        format!("exports/{}/{}/{attempt}.csv", self.organization_id, self.id)
    }
}

/// Which job a worker wants and how long it will hold it.
#[derive(Debug, Clone, Copy)]
pub struct ClaimTerms {
    /// The name of the hold.
    pub owner: LeaseOwner,
    /// The moment of the claim.
    pub now: Timestamp,
    /// How long the hold lasts without a heartbeat.
    pub lease_millis: i64,
    /// Pending jobs created after this moment are left to the worker that hears of them first; [`Timestamp::MAX`]
    /// leaves none.
    pub pending_before: Timestamp,
    /// A job that was tried so often is not tried again.
    pub max_tries: u32,
}

/// A file that was written, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedFile {
    /// Its key.
    pub object_key: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Lines, the header not counted.
    pub rows: u64,
    /// SHA-256 of its content, lower-case hexadecimal.
    pub sha256: String,
    /// From this moment on it is no longer given out.
    pub expires_at: Timestamp,
}
