//! API keys as they are recorded; the secret itself is known to its owner only.

use assay_contracts::ids::{ApiKeyId, OrganizationId};
use assay_contracts::tenant::Scopes;
use assay_contracts::time::Timestamp;

/// The use of a key is recorded at most once in so many milliseconds: a minute.
pub const USE_INTERVAL_MILLIS: i64 = 60_000;

/// A key that may be used now: known, neither expired nor revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveKey {
    /// The key's record.
    pub id: ApiKeyId,
    /// Whose it is.
    pub organization_id: OrganizationId,
    /// What it may do.
    pub scopes: Scopes,
    /// The last recorded use.
    pub last_used_at: Option<Timestamp>,
}

impl ActiveKey {
    /// Whether a use at `now` is worth recording.
    pub fn use_is_due(&self, now: Timestamp) -> bool {
        self.last_used_at.is_none_or(|last| now.millis_since(last) >= USE_INTERVAL_MILLIS)
    }
}

/// Everything that is known of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// Id of the record.
    pub id: ApiKeyId,
    /// Name of the organization.
    pub organization: String,
    /// What its creator called it.
    pub name: String,
    /// What it may do.
    pub scopes: Scopes,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was used last, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// What came of revoking a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revocation {
    /// It is revoked from now on; gateways may know it for up to 30 seconds more.
    Revoked,
    /// It was revoked before.
    AlreadyRevoked(Timestamp),
    /// There is no such key.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_recorded_at_most_once_a_minute() {
        let now = Timestamp::saturating_from_millis(1_763_600_000_000);
        let last_used = |last_used_at| ActiveKey {
            id: uuid::Uuid::nil().into(),
            organization_id: uuid::Uuid::nil().into(),
            scopes: Scopes::default_for_keys(),
            last_used_at,
        };
        assert!(last_used(None).use_is_due(now));
        assert!(!last_used(Some(now.plus_millis(-59_999))).use_is_due(now));
        assert!(last_used(Some(now.plus_millis(-60_000))).use_is_due(now));
    }
}
