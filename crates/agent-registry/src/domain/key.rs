//! API keys. Only the hash of a key is stored.

use assay_contracts::ids::{ApiKeyId, OrganizationId};
use assay_contracts::tenant::Scopes;
use assay_contracts::time::Timestamp;

/// Minimum interval between two recorded uses of a key.
pub const USE_RECORD_INTERVAL_MILLIS: i64 = 60_000;

/// A key that is neither expired nor revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveKey {
    pub id: ApiKeyId,
    pub organization_id: OrganizationId,
    pub scopes: Scopes,
    pub last_used_at: Option<Timestamp>,
}

impl ActiveKey {
    pub fn should_record_use(&self, now: Timestamp) -> bool {
        self.last_used_at.is_none_or(|last| now.millis_since(last) >= USE_RECORD_INTERVAL_MILLIS)
    }
}

/// The stored properties of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    pub id: ApiKeyId,
    pub organization: String,
    pub name: String,
    pub scopes: Scopes,
    pub created_at: Timestamp,
    /// The last recorded use. Uses within a minute after it are not recorded.
    pub last_used_at: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// The outcome of a revocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revocation {
    /// Gateways may accept the key for up to 30 more seconds, or 60 while agent-registry does not answer.
    Revoked,
    AlreadyRevoked(Timestamp),
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_use_is_recorded_at_most_once_a_minute() {
        let now = Timestamp::saturating_from_millis(1_763_600_000_000);
        let last_used = |last_used_at| ActiveKey {
            id: uuid::Uuid::nil().into(),
            organization_id: uuid::Uuid::nil().into(),
            scopes: Scopes::default_for_keys(),
            last_used_at,
        };
        assert!(last_used(None).should_record_use(now));
        assert!(!last_used(Some(now.plus_millis(-59_999))).should_record_use(now));
        assert!(last_used(Some(now.plus_millis(-60_000))).should_record_use(now));
    }
}
