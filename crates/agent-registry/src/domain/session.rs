//! Sessions of the console and the sign-in links that begin them. Only hashes of their tokens are stored.

use assay_contracts::console::Session;
use assay_contracts::ids::{ApiKeyId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_platform::auth::TokenHash;

use super::USE_RECORD_INTERVAL_MILLIS;

/// How long a sign-in link, the one-time address that begins a session, can be used.
pub const SIGN_IN_LINK_MILLIS: i64 = 60 * 60 * 1000;

/// Maximum length of a stored `User-Agent`, in characters.
const MAX_USER_AGENT_CHARS: usize = 200;

/// When sessions end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// A session ends when it was not used for this time.
    pub idle_millis: i64,
    /// A session ends this long after its beginning, used or not.
    pub total_millis: i64,
}

/// Who begins a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignIn {
    /// The holder of a sign-in link.
    Link(TokenHash),
    /// The holder of an API key; the session ends with the key.
    Key { id: ApiKeyId, organization_id: OrganizationId },
}

/// A session that has not ended, nor has its API key if it has one; and when its use was last recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveSession {
    pub session: Session,
    pub last_used_at: Timestamp,
}

impl ActiveSession {
    pub fn should_record_use(&self, now: Timestamp) -> bool {
        now.millis_since(self.last_used_at) >= USE_RECORD_INTERVAL_MILLIS
    }
}

/// The `User-Agent` header, truncated and without control characters.
pub fn clean_user_agent(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(MAX_USER_AGENT_CHARS).collect()
}
