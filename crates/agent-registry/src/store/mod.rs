//! The store of the registry, shaped by the use cases. Its statements are written once (`sql`) and compiled for each
//! database: `on_database!` calls `postgres::f(connection, …)` or `sqlite::f(connection, …)`.

#[cfg(feature = "distributed")]
mod postgres;
mod sqlite;
#[cfg(test)]
mod tests;

use assay_contracts::agent::{Agent, AgentFacts};
use assay_contracts::console::{Session, SessionEntry};
use assay_contracts::ids::{AgentId, ApiKeyId, OrganizationId, SessionId};
use assay_contracts::tenant::Scopes;
use assay_contracts::time::Timestamp;
use assay_messaging::OutgoingEvent;
use assay_platform::auth::{ApiKeyHash, TokenHash};
use assay_platform::db::idempotency::{KeyReuse, Record};
use assay_platform::db::{Database, DatabaseError, on_database};

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
    /// The organization with this name; it is created with `new_id` when it does not exist.
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

/// Cheap to clone; clones share the connections.
#[derive(Clone)]
pub struct Store {
    database: Database,
}

pub fn open(database: &Database) -> Store {
    Store { database: database.clone() }
}

impl Store {
    /// Stores an agent, its event and its idempotency record in one transaction.
    pub async fn create_agent(&self, new: AgentToStore) -> Result<StoreAgentOutcome, DatabaseError> {
        on_database!(self, write, agents::create(&new))
    }

    /// The agents of an organization with one of these ids or external ids, without duplicates.
    pub async fn find_agents(
        &self,
        organization_id: OrganizationId,
        ids: Vec<AgentId>,
        external_ids: Vec<String>,
    ) -> Result<Vec<AgentFacts>, DatabaseError> {
        on_database!(self, read, agents::find(organization_id, &ids, &external_ids))
    }

    /// The key with this hash, unless it is expired or revoked at `now`.
    pub async fn find_active_key(
        &self,
        hash: ApiKeyHash,
        now: Timestamp,
    ) -> Result<Option<ActiveKey>, DatabaseError> {
        on_database!(self, read, keys::find_active(&hash, now))
    }

    /// Records a use, at most once a minute.
    pub async fn record_key_use(&self, id: ApiKeyId, now: Timestamp) -> Result<(), DatabaseError> {
        on_database!(self, write, keys::record_use(id, now))
    }

    /// Stores a key unless it exists, and creates its organization when needed.
    pub async fn create_key(&self, new: KeyToStore) -> Result<StoreKeyOutcome, DatabaseError> {
        on_database!(self, write, keys::create(&new))
    }

    /// Keys, newest first, at most [`MAX_LISTED_KEYS`]; of one organization or of all.
    pub async fn list_keys(
        &self,
        organization: Option<OrganizationName>,
    ) -> Result<Vec<KeyRecord>, DatabaseError> {
        on_database!(self, read, keys::list(organization.as_ref()))
    }

    /// Keys of an organization, newest first, at most [`MAX_LISTED_KEYS`]; with `before` those created before this key.
    pub async fn list_organization_keys(
        &self,
        organization_id: OrganizationId,
        before: Option<ApiKeyId>,
    ) -> Result<Vec<KeyRecord>, DatabaseError> {
        on_database!(self, read, keys::list_in_organization(organization_id, before))
    }

    /// Revokes a key; a key of another organization than `owner` is unknown. Without `owner` it may belong to any.
    pub async fn revoke_key(
        &self,
        id: ApiKeyId,
        owner: Option<OrganizationId>,
        now: Timestamp,
    ) -> Result<Revocation, DatabaseError> {
        on_database!(self, write, keys::revoke(id, owner, now))
    }

    /// Agents of an organization, newest first, at most [`MAX_LISTED_AGENTS`]; with `before` those registered before this
    /// agent. The number counts all agents of the organization.
    pub async fn list_agents(
        &self,
        organization_id: OrganizationId,
        before: Option<AgentId>,
    ) -> Result<(Vec<Agent>, u64), DatabaseError> {
        on_database!(self, read, agents::list(organization_id, before))
    }

    /// Stores a sign-in link; false when the organization does not exist.
    pub async fn create_sign_in_link(
        &self,
        organization: OrganizationName,
        token: TokenHash,
        expires_at: Timestamp,
    ) -> Result<bool, DatabaseError> {
        on_database!(self, write, sessions::create_sign_in_link(&organization, &token, expires_at))
    }

    /// Stores a session, and uses up the sign-in link in the same transaction. `None` when the sign-in link is unknown or
    /// expired.
    pub async fn begin_session(&self, new: SessionToStore) -> Result<Option<Session>, DatabaseError> {
        on_database!(self, write, sessions::begin(&new))
    }

    /// The active session with this token: it has not ended, was used after `idle_since`, and its API key has not ended.
    pub async fn find_session(
        &self,
        token: TokenHash,
        idle_since: Timestamp,
        now: Timestamp,
    ) -> Result<Option<ActiveSession>, DatabaseError> {
        on_database!(self, read, sessions::find(&token, idle_since, now))
    }

    pub async fn record_session_use(&self, id: SessionId, now: Timestamp) -> Result<(), DatabaseError> {
        on_database!(self, write, sessions::record_use(id, now))
    }

    /// Active sessions of an organization, newest first, at most [`MAX_LISTED_SESSIONS`]; with `before` those that began before
    /// this session.
    pub async fn list_sessions(
        &self,
        organization_id: OrganizationId,
        before: Option<SessionId>,
        idle_since: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<SessionEntry>, DatabaseError> {
        on_database!(self, read, sessions::list(organization_id, before, idle_since, now))
    }

    /// Ends a session of the organization; one that has ended already is no error.
    pub async fn end_session(
        &self,
        organization_id: OrganizationId,
        id: SessionId,
    ) -> Result<(), DatabaseError> {
        on_database!(self, write, sessions::end(organization_id, id))
    }

    /// Organizations with their retention overrides, by id, after `after`.
    pub async fn page_retention(
        &self,
        after: Option<OrganizationId>,
        limit: usize,
    ) -> Result<Vec<RetentionRecord>, DatabaseError> {
        on_database!(self, read, retention::page(after, limit))
    }

    pub async fn find_retention(
        &self,
        name: OrganizationName,
    ) -> Result<Option<RetentionRecord>, DatabaseError> {
        on_database!(self, read, retention::find(&name))
    }

    /// Changes the overrides of an organization and returns them; `None` when it does not exist.
    pub async fn set_retention(
        &self,
        name: OrganizationName,
        change: RetentionChange,
    ) -> Result<Option<RetentionRecord>, DatabaseError> {
        on_database!(self, write, retention::set(&name, change))
    }

    /// Removes a batch of expired recorded responses and returns their number.
    pub async fn prune_recorded_responses(&self, now: Timestamp) -> Result<usize, DatabaseError> {
        on_database!(self, write, idempotency::Connection::prune_recorded_responses(now))
    }

    /// Removes sign-in links and sessions that have ended.
    pub async fn prune_sessions(&self, idle_since: Timestamp, now: Timestamp) -> Result<(), DatabaseError> {
        on_database!(self, write, sessions::prune(idle_since, now))
    }
}
