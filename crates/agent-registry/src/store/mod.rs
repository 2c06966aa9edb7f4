//! The store of the registry: one trait, and the same statements for both databases.

#[cfg(feature = "distributed")]
mod postgres;
mod sqlite;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use assay_contracts::agent::Agent;
use assay_contracts::console::SessionEntry;
use assay_contracts::event::AgentFacts;
use assay_contracts::ids::{AgentId, ApiKeyId, OrganizationId, SessionId};
use assay_contracts::tenant::Scopes;
use assay_contracts::time::Timestamp;
use assay_messaging::OutgoingEvent;
use assay_platform::auth::{ApiKeyHash, TokenHash};
use assay_platform::db::idempotency::{KeyReuse, Record};
use assay_platform::db::{Database, DatabaseError};
use async_trait::async_trait;

use crate::domain::{
    ActiveKey, ActiveSession, KeyName, KeyRecord, OrganizationName, RetentionChange, RetentionRecord,
    Revocation, SignIn,
};

/// A list of keys holds at most this many, the newest.
pub const MAX_LISTED_KEYS: i64 = 1_000;
/// A list of agents holds at most this many, the newest.
pub const MAX_LISTED_AGENTS: i64 = 1_000;
/// A list of sessions holds at most this many, the newest.
pub const MAX_LISTED_SESSIONS: i64 = 200;

/// An agent to be stored, with the event and the idempotency record of the same transaction.
pub struct AgentToStore {
    pub organization_id: OrganizationId,
    pub agent: Agent,
    pub event: OutgoingEvent,
    pub record: Option<Record>,
}

/// The outcome of storing an agent.
#[derive(Debug, PartialEq, Eq)]
pub enum StoreAgentOutcome {
    Created,
    /// The external id is taken; nothing was stored.
    Duplicate,
    /// The idempotency key was used before; nothing was stored.
    IdempotencyKeyReused(KeyReuse),
}

/// The organization of a key to be stored.
#[derive(Clone)]
pub enum KeyOwner {
    /// It is created with this id when it does not exist.
    Named {
        name: OrganizationName,
        new_id: OrganizationId,
    },
    Existing(OrganizationId),
}

/// A key to be stored.
#[derive(Clone)]
pub struct KeyToStore {
    pub id: ApiKeyId,
    pub hash: ApiKeyHash,
    pub owner: KeyOwner,
    pub name: KeyName,
    pub scopes: Scopes,
    pub expires_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

/// The outcome of storing a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKeyOutcome {
    Created,
    AlreadyExists,
}

/// A session to be stored.
#[derive(Clone)]
pub struct SessionToStore {
    pub id: SessionId,
    pub sign_in: SignIn,
    pub token: TokenHash,
    pub browser: String,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

#[async_trait]
pub trait Store: Send + Sync {
    /// Stores an agent, its event and its idempotency record in one transaction.
    async fn create_agent(&self, new: AgentToStore) -> Result<StoreAgentOutcome, DatabaseError>;

    /// The agents of an organization with one of these ids or external ids, without duplicates.
    async fn find_agents(
        &self,
        organization_id: OrganizationId,
        ids: Vec<AgentId>,
        external_ids: Vec<String>,
    ) -> Result<Vec<AgentFacts>, DatabaseError>;

    /// The key with this hash, unless it is expired or revoked at `now`.
    async fn find_active_key(
        &self,
        hash: ApiKeyHash,
        now: Timestamp,
    ) -> Result<Option<ActiveKey>, DatabaseError>;

    /// Records a use, at most once a minute.
    async fn record_key_use(&self, id: ApiKeyId, now: Timestamp) -> Result<(), DatabaseError>;

    /// Stores a key unless it exists, and creates its organization when needed.
    async fn create_key(&self, new: KeyToStore) -> Result<StoreKeyOutcome, DatabaseError>;

    /// Keys, newest first, at most [`MAX_LISTED_KEYS`]; of one organization or of all.
    async fn list_keys(
        &self,
        organization: Option<OrganizationName>,
    ) -> Result<Vec<KeyRecord>, DatabaseError>;

    /// Keys of an organization, newest first, at most [`MAX_LISTED_KEYS`]; with `before` those created before this key.
    async fn list_organization_keys(
        &self,
        organization_id: OrganizationId,
        before: Option<ApiKeyId>,
    ) -> Result<Vec<KeyRecord>, DatabaseError>;

    /// Revokes a key; a key of another organization than `owner` is unknown.
    async fn revoke_key(
        &self,
        id: ApiKeyId,
        owner: Option<OrganizationId>,
        now: Timestamp,
    ) -> Result<Revocation, DatabaseError>;

    /// Agents of an organization, newest first, at most [`MAX_LISTED_AGENTS`]; with `before` those registered before this
    /// agent. The number counts all agents of the organization.
    async fn list_agents(
        &self,
        organization_id: OrganizationId,
        before: Option<AgentId>,
    ) -> Result<(Vec<Agent>, u64), DatabaseError>;

    /// Stores a sign-in link; false when the organization does not exist.
    async fn create_sign_in_link(
        &self,
        organization: OrganizationName,
        token: TokenHash,
        expires_at: Timestamp,
    ) -> Result<bool, DatabaseError>;

    /// Stores a session, and uses up the sign-in link in the same transaction. `None` when the sign-in link is unknown or
    /// expired.
    async fn begin_session(&self, new: SessionToStore) -> Result<Option<ActiveSession>, DatabaseError>;

    /// The session with this token, unless it has ended, was last used at or before `idle_since`, or its API key has ended.
    async fn find_session(
        &self,
        token: TokenHash,
        idle_since: Timestamp,
        now: Timestamp,
    ) -> Result<Option<ActiveSession>, DatabaseError>;

    async fn record_session_use(&self, id: SessionId, now: Timestamp) -> Result<(), DatabaseError>;

    /// Sessions in force of an organization, newest first, at most [`MAX_LISTED_SESSIONS`].
    async fn list_sessions(
        &self,
        organization_id: OrganizationId,
        idle_since: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<SessionEntry>, DatabaseError>;

    /// Ends a session; false when the organization has none with this id.
    async fn end_session(
        &self,
        organization_id: OrganizationId,
        id: SessionId,
    ) -> Result<bool, DatabaseError>;

    /// Organizations with their retention overrides, by id, after `after`.
    async fn page_retention(
        &self,
        after: Option<OrganizationId>,
        limit: usize,
    ) -> Result<Vec<RetentionRecord>, DatabaseError>;

    async fn find_retention(&self, name: OrganizationName) -> Result<Option<RetentionRecord>, DatabaseError>;

    /// Changes the overrides of an organization and returns them; `None` when it does not exist.
    async fn set_retention(
        &self,
        name: OrganizationName,
        change: RetentionChange,
    ) -> Result<Option<RetentionRecord>, DatabaseError>;

    /// Removes a batch of expired idempotency records and returns their number.
    async fn prune_idempotency_records(&self, now: Timestamp) -> Result<usize, DatabaseError>;

    /// Removes sign-in links and sessions that have ended.
    async fn prune_sessions(&self, idle_since: Timestamp, now: Timestamp) -> Result<(), DatabaseError>;
}

pub fn open(database: &Database) -> Arc<dyn Store> {
    match database {
        #[cfg(feature = "distributed")]
        Database::Postgres(postgres) => Arc::new(postgres::SqlStore::new(postgres.clone())),
        Database::Sqlite(sqlite) => Arc::new(sqlite::SqlStore::new(sqlite.clone())),
    }
}
