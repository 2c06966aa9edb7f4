//! Attempts at delivering a message.

use assay_contracts::ids::{OrganizationId, WebhookDeliveryId, WebhookId};
use assay_contracts::time::Timestamp;
use assay_contracts::webhook::AttemptError;
use uuid::Uuid;

use super::secret::SealedSecrets;

/// The name of one hold on a message: made anew for each claim, so that nobody takes another's for its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease(Uuid);

impl Lease {
    /// The UUID itself, for storage.
    pub const fn as_uuid(&self) -> Uuid {
        self.0
    }
}

impl From<Uuid> for Lease {
    fn from(value: Uuid) -> Self {
        Self(value)
    }
}

/// A message that is about to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Its id.
    pub id: WebhookDeliveryId,
    /// The hold on it.
    pub lease: Lease,
    /// Where it goes.
    pub endpoint_id: WebhookId,
    /// The tenant.
    pub organization_id: OrganizationId,
    /// The address.
    pub url: String,
    /// What it is signed with.
    pub secrets: SealedSecrets,
    /// What is sent.
    pub payload: String,
    /// Attempts before this one.
    pub attempts: u32,
    /// How many of them were made before the last replay.
    pub earlier_attempts: u32,
}

impl Claim {
    /// Which attempt of its round the next one is, from 1.
    pub fn number_in_round(&self) -> u32 {
        self.attempts.saturating_sub(self.earlier_attempts) + 1
    }
}

/// How an attempt went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// When it began.
    pub attempted_at: Timestamp,
    /// How long it took.
    pub duration_ms: u64,
    /// What was answered.
    pub status_code: Option<u16>,
    /// Why it failed.
    pub error: Option<AttemptError>,
    /// How long the receiver asks to be left alone.
    pub retry_after_seconds: Option<i64>,
}

impl Attempt {
    /// One without an answer.
    pub fn failed(attempted_at: Timestamp, duration_ms: u64, error: Option<AttemptError>) -> Self {
        Self { attempted_at, duration_ms, status_code: None, error, retry_after_seconds: None }
    }

    /// One that was answered.
    pub fn answered(attempted_at: Timestamp, duration_ms: u64, status_code: u16) -> Self {
        let error = (!(200..300).contains(&status_code)).then_some(AttemptError::Status);
        Self { attempted_at, duration_ms, status_code: Some(status_code), error, retry_after_seconds: None }
    }
}
