//! Attempts at delivering a message.

use assay_contracts::ids::{OrganizationId, WebhookDeliveryId, WebhookId};
use assay_contracts::time::Timestamp;
use assay_contracts::webhook::AttemptError;
use uuid::Uuid;

use super::secret::SealedSecrets;

/// Identifies the leases of one claim. Every claim has a new id, so that results of expired leases are not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseId(Uuid);

impl LeaseId {
    pub const fn as_uuid(&self) -> Uuid {
        self.0
    }
}

impl From<Uuid> for LeaseId {
    fn from(value: Uuid) -> Self {
        Self(value)
    }
}

/// A leased message that is about to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedMessage {
    pub id: WebhookDeliveryId,
    pub lease: LeaseId,
    pub endpoint_id: WebhookId,
    pub organization_id: OrganizationId,
    pub url: String,
    pub secrets: SealedSecrets,
    pub payload: String,
    /// Attempts before this one.
    pub attempts: u32,
    /// Attempts before the last replay.
    pub attempts_before_replay: u32,
}

impl ClaimedMessage {
    /// Number of this attempt in its retry cycle, from 1; a replay starts a new cycle.
    pub fn attempt_in_cycle(&self) -> u32 {
        self.attempts.saturating_sub(self.attempts_before_replay) + 1
    }
}

/// A finished attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Start of the attempt.
    pub attempted_at: Timestamp,
    pub duration_ms: u64,
    /// `None` without a response.
    pub status_code: Option<u16>,
    /// `None` when the message was delivered.
    pub error: Option<AttemptError>,
    /// `Retry-After` of the response.
    pub retry_after_seconds: Option<i64>,
}

impl Attempt {
    /// An attempt without a response.
    pub fn failed(attempted_at: Timestamp, duration_ms: u64, error: AttemptError) -> Self {
        Self { attempted_at, duration_ms, status_code: None, error: Some(error), retry_after_seconds: None }
    }

    /// An attempt with a response.
    pub fn answered(attempted_at: Timestamp, duration_ms: u64, status_code: u16) -> Self {
        let error = (!(200..300).contains(&status_code)).then_some(AttemptError::Status);
        Self { attempted_at, duration_ms, status_code: Some(status_code), error, retry_after_seconds: None }
    }
}
