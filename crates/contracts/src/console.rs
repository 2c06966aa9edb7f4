//! Sessions of the console, and what it reads of an organization's keys and agents: requests and responses between console and
//! agent-registry. Not public; both ends are at most one release apart.

use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::ids::{ApiKeyId, OrganizationId, SessionId};
use crate::tenant::Scopes;
use crate::time::Timestamp;

/// Console → agent-registry: begin a session. Neither the credential nor the session's token is ever sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeginSession {
    /// What the person signs in with.
    pub credential: SignInCredential,
    /// SHA-256 of the new session's token, lower-case hexadecimal.
    pub token_sha256: String,
    /// The browser, as it names itself, shortened; shown in the list of sessions.
    pub browser: String,
}

/// What a person signs in with, as SHA-256 in lower-case hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignInCredential {
    /// The token of a sign-in link; it is used up.
    LinkSha256(String),
    /// An API key with the scope `console`.
    KeySha256(String),
}

/// Response to [`BeginSession`]; always a 200: a 401 would mean that the console's own token was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignInOutcome {
    /// The session began.
    Begun(Session),
    /// The credential is unknown, expired, used up or revoked.
    Refused,
    /// The API key is valid but lacks the scope `console`.
    ScopeMissing,
}

/// Console → agent-registry: the session of a cookie. It counts as a use.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindSession {
    /// SHA-256 of the session's token, lower-case hexadecimal.
    pub token_sha256: String,
}

/// Response to [`FindSession`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundSession {
    /// Absent when it is unknown, signed out, idle for too long or at its end, or when its API key was revoked.
    pub session: Option<Session>,
}

/// A session that is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Session id.
    pub id: SessionId,
    /// The organization that the person is signed in to.
    pub organization_id: OrganizationId,
    /// Its name.
    pub organization: String,
    /// The absolute end.
    pub expires_at: Timestamp,
}

/// An entry in the list of an organization's sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEntry {
    /// Session id.
    pub id: SessionId,
    /// The browser, as it names itself.
    pub browser: String,
    /// Name of the API key it began with; absent for a sign-in link.
    pub key_name: Option<String>,
    /// When the person signed in.
    pub created_at: Timestamp,
    /// To the minute.
    pub last_used_at: Timestamp,
    /// The absolute end.
    pub expires_at: Timestamp,
}

/// Response: the sessions in force of the token's organization, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionList {
    /// At most 200.
    pub sessions: Vec<SessionEntry>,
}

/// An API key in a list; the key itself is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyEntry {
    /// The key's record.
    pub id: ApiKeyId,
    /// What it is for.
    pub name: String,
    /// What it may do.
    pub scopes: Scopes,
    /// When it was created.
    pub created_at: Timestamp,
    /// To the minute.
    pub last_used_at: Option<Timestamp>,
    /// When it stops working.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// Response: the keys of the token's organization, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyList {
    /// The newest thousand.
    pub keys: Vec<KeyEntry>,
}

/// Console → agent-registry: create a key for the token's organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewKeyRequest {
    /// What it is for.
    pub name: String,
    /// What it may do.
    pub scopes: Scopes,
    /// When it stops working; never when absent.
    pub expires_at: Option<Timestamp>,
}

/// Response to [`NewKeyRequest`]: the only time that the key is sent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewKey {
    /// The key's record.
    pub id: ApiKeyId,
    /// The key in plain text.
    pub key: String,
}

/// Response: the agents of the token's organization, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentList {
    /// The newest thousand.
    pub agents: Vec<Agent>,
}
