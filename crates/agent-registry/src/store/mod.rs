//! Where the registry keeps its records: one trait of its use cases, one implementation for each database.

mod postgres;
mod rows;
mod sqlite;

use std::sync::Arc;

use assay_contracts::agent::Agent;
use assay_contracts::event::AgentFacts;
use assay_contracts::ids::{AgentId, ApiKeyId, OrganizationId};
use assay_contracts::tenant::Scopes;
use assay_contracts::time::Timestamp;
use assay_messaging::OutgoingEvent;
use assay_platform::auth::ApiKeyHash;
use assay_platform::db::idempotency::{Earlier, Record};
use assay_platform::db::{Database, DatabaseError};
use async_trait::async_trait;

use self::postgres::PostgresStore;
use self::sqlite::SqliteStore;
use crate::domain::{
    ActiveKey, KeyName, KeyRecord, OrganizationName, RetentionChange, RetentionRecord, Revocation,
};

/// At most so many keys are listed, the newest ones.
pub const MAX_LISTED_KEYS: i64 = 1_000;

/// An agent to be stored, and what goes with it in the same transaction.
pub struct AgentToStore {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// The agent.
    pub agent: Agent,
    /// The event that tells of it.
    pub event: OutgoingEvent,
    /// The request's idempotency record, when it has a key.
    pub record: Option<Record>,
}

/// What came of storing an agent.
#[derive(Debug, PartialEq, Eq)]
pub enum AgentStored {
    /// It is stored.
    Created,
    /// Its external id is taken; nothing was stored.
    Duplicate,
    /// Its idempotency key was used before; nothing was stored.
    Earlier(Earlier),
}

/// A key to be stored, with its organization, which is created when there is none of that name.
#[derive(Clone)]
pub struct KeyToStore {
    /// Id of the key's record.
    pub id: ApiKeyId,
    /// What is kept of the key.
    pub hash: ApiKeyHash,
    /// Name of the organization.
    pub organization: OrganizationName,
    /// Id of the organization, if it has to be created.
    pub new_organization_id: OrganizationId,
    /// What the key is called.
    pub name: KeyName,
    /// What it may do.
    pub scopes: Scopes,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
    /// Now.
    pub created_at: Timestamp,
}

/// What came of storing a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyStored {
    /// It is stored.
    Created,
    /// It was known before; nothing was stored.
    Known,
}

/// The records of the registry.
#[async_trait]
pub trait Store: Send + Sync {
    /// Stores an agent, its event and its idempotency record, all or nothing.
    async fn create_agent(&self, new: AgentToStore) -> Result<AgentStored, DatabaseError>;

    /// The agents of an organization that have one of these ids or external ids, each once.
    async fn find_agents(
        &self,
        organization_id: OrganizationId,
        ids: Vec<AgentId>,
        external_ids: Vec<String>,
    ) -> Result<Vec<AgentFacts>, DatabaseError>;

    /// The key with this hash, when it may be used at `now`.
    async fn find_active_key(
        &self,
        hash: ApiKeyHash,
        now: Timestamp,
    ) -> Result<Option<ActiveKey>, DatabaseError>;

    /// Records a use, unless one within the last minute is recorded.
    async fn record_key_use(&self, id: ApiKeyId, now: Timestamp) -> Result<(), DatabaseError>;

    /// Stores a key, with its organization when there is none of that name, unless the key is known.
    async fn create_key(&self, new: KeyToStore) -> Result<KeyStored, DatabaseError>;

    /// Keys, newest first, at most [`MAX_LISTED_KEYS`]; of one organization or of all.
    async fn list_keys(
        &self,
        organization: Option<OrganizationName>,
    ) -> Result<Vec<KeyRecord>, DatabaseError>;

    /// Revokes a key.
    async fn revoke_key(&self, id: ApiKeyId, now: Timestamp) -> Result<Revocation, DatabaseError>;

    /// Organizations with their own periods, by id, from behind `after` on, at most `limit`.
    async fn page_retention(
        &self,
        after: Option<OrganizationId>,
        limit: usize,
    ) -> Result<Vec<RetentionRecord>, DatabaseError>;

    /// An organization with its own periods.
    async fn find_retention(&self, name: OrganizationName) -> Result<Option<RetentionRecord>, DatabaseError>;

    /// Changes an organization's own periods, and answers what they are then; `None` when it does not exist.
    async fn set_retention(
        &self,
        name: OrganizationName,
        change: RetentionChange,
    ) -> Result<Option<RetentionRecord>, DatabaseError>;

    /// Removes a batch of expired idempotency records; answers how many.
    async fn prune(&self, now: Timestamp) -> Result<usize, DatabaseError>;
}

/// The store in `database`.
pub fn open(database: &Database) -> Arc<dyn Store> {
    match database {
        Database::Postgres(postgres) => Arc::new(PostgresStore::new(postgres.clone())),
        Database::Sqlite(sqlite) => Arc::new(SqliteStore::new(sqlite.clone())),
    }
}
