//! The lease of a worker on a job. It expires, so that another worker takes over the job of a crashed one.

use assay_contracts::export::{ExportFilters, ExportKind};
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::time::Timestamp;
use uuid::Uuid;

use super::file_key::FileKey;

/// Id of one lease, generated for each claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseOwner(Uuid);

impl LeaseOwner {
    pub const fn as_uuid(&self) -> Uuid {
        self.0
    }
}

impl From<Uuid> for LeaseOwner {
    fn from(value: Uuid) -> Self {
        Self(value)
    }
}

/// A job under lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub id: ExportId,
    pub organization_id: OrganizationId,
    pub kind: ExportKind,
    pub filters: ExportFilters,
    pub owner: LeaseOwner,
    /// Number of this claim, from 1; part of the object key.
    pub attempt: u32,
    /// Number of this attempt, from 1, without released claims; compared with the maximum.
    pub counted_attempt: u32,
}

impl Claim {
    /// Object key of this attempt's file. Unique for each attempt.
    pub fn object_key(&self) -> String {
        self.object_key_of(self.attempt)
    }

    /// Object keys of the previous attempts.
    pub fn earlier_object_keys(&self) -> Vec<String> {
        (1..self.attempt).map(|attempt| self.object_key_of(attempt)).collect()
    }

    fn object_key_of(&self, attempt: u32) -> String {
        FileKey { organization_id: self.organization_id, export_id: self.id, attempt }.to_string()
    }
}

/// Parameters of a claim.
#[derive(Debug, Clone, Copy)]
pub struct ClaimTerms {
    pub owner: LeaseOwner,
    pub now: Timestamp,
    /// Duration of the lease unless it is renewed.
    pub lease_millis: i64,
    /// No lease or pause ends later, unless a wrong clock has set it: such a job is due.
    pub latest_lease_end: Timestamp,
    /// Pending jobs created after this moment are left to the worker that receives their event; [`Timestamp::MAX`] claims
    /// all.
    pub pending_before: Timestamp,
    /// Jobs with this many counted attempts are not claimed.
    pub max_attempts: u32,
    /// Jobs of this organization are not claimed: it has as many jobs in this worker as it may have.
    pub except: Option<OrganizationId>,
}

/// A written file, with which its job can be completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedFile {
    pub object_key: String,
    pub bytes: u64,
    /// Number of lines without the header.
    pub rows: u64,
    /// Lower-case hexadecimal.
    pub sha256: String,
    /// Downloads are refused from this moment on.
    pub expires_at: Timestamp,
    /// Evaluations that had not arrived; `None`: they could not be counted.
    pub missing_evaluations: Option<u64>,
}
