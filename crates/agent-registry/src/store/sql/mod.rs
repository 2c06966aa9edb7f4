//! The store for both databases: `postgres.rs` and `sqlite.rs` each include this module, and define what differs between the
//! databases (imported here from `super`).

mod agents;
mod keys;
mod retention;
pub(super) mod schema;
mod sessions;

use assay_contracts::agent::Agent;
use assay_contracts::console::SessionEntry;
use assay_contracts::event::AgentFacts;
use assay_contracts::ids::{AgentId, ApiKeyId, OrganizationId, SessionId};
use assay_contracts::time::Timestamp;
use assay_platform::auth::{ApiKeyHash, TokenHash};
use assay_platform::db::{DatabaseError, idempotency};
use async_trait::async_trait;

use super::{Connection, Database, IdType, lock_organization};
use crate::domain::{
    ActiveKey, ActiveSession, KeyRecord, OrganizationName, RetentionChange, RetentionRecord, Revocation,
};
use crate::store::{AgentToStore, KeyToStore, SessionToStore, Store, StoreAgentOutcome, StoreKeyOutcome};

pub struct SqlStore {
    database: Database,
}

impl SqlStore {
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

#[async_trait]
impl Store for SqlStore {
    async fn create_agent(&self, new: AgentToStore) -> Result<StoreAgentOutcome, DatabaseError> {
        self.database.write(move |connection| agents::create(connection, &new)).await
    }

    async fn find_agents(
        &self,
        organization_id: OrganizationId,
        ids: Vec<AgentId>,
        external_ids: Vec<String>,
    ) -> Result<Vec<AgentFacts>, DatabaseError> {
        self.database
            .read(move |connection| agents::find(connection, organization_id, &ids, &external_ids))
            .await
    }

    async fn find_active_key(
        &self,
        hash: ApiKeyHash,
        now: Timestamp,
    ) -> Result<Option<ActiveKey>, DatabaseError> {
        self.database.read(move |connection| keys::find_active(connection, &hash, now)).await
    }

    async fn record_key_use(&self, id: ApiKeyId, now: Timestamp) -> Result<(), DatabaseError> {
        self.database.write(move |connection| keys::record_use(connection, id, now)).await
    }

    async fn create_key(&self, new: KeyToStore) -> Result<StoreKeyOutcome, DatabaseError> {
        self.database.write(move |connection| keys::create(connection, &new)).await
    }

    async fn list_keys(
        &self,
        organization: Option<OrganizationName>,
    ) -> Result<Vec<KeyRecord>, DatabaseError> {
        self.database.read(move |connection| keys::list(connection, organization.as_ref())).await
    }

    async fn list_organization_keys(
        &self,
        organization_id: OrganizationId,
        before: Option<ApiKeyId>,
    ) -> Result<Vec<KeyRecord>, DatabaseError> {
        self.database
            .read(move |connection| keys::list_in_organization(connection, organization_id, before))
            .await
    }

    async fn revoke_key(
        &self,
        id: ApiKeyId,
        owner: Option<OrganizationId>,
        now: Timestamp,
    ) -> Result<Revocation, DatabaseError> {
        self.database.write(move |connection| keys::revoke(connection, id, owner, now)).await
    }

    async fn list_agents(
        &self,
        organization_id: OrganizationId,
        before: Option<AgentId>,
    ) -> Result<(Vec<Agent>, u64), DatabaseError> {
        self.database.read(move |connection| agents::list(connection, organization_id, before)).await
    }

    async fn create_sign_in_link(
        &self,
        organization: OrganizationName,
        token: TokenHash,
        expires_at: Timestamp,
    ) -> Result<bool, DatabaseError> {
        self.database
            .write(move |connection| {
                sessions::create_sign_in_link(connection, &organization, &token, expires_at)
            })
            .await
    }

    async fn begin_session(&self, new: SessionToStore) -> Result<Option<ActiveSession>, DatabaseError> {
        self.database.write(move |connection| sessions::begin(connection, &new)).await
    }

    async fn find_session(
        &self,
        token: TokenHash,
        idle_since: Timestamp,
        now: Timestamp,
    ) -> Result<Option<ActiveSession>, DatabaseError> {
        self.database.read(move |connection| sessions::find(connection, &token, idle_since, now)).await
    }

    async fn record_session_use(&self, id: SessionId, now: Timestamp) -> Result<(), DatabaseError> {
        self.database.write(move |connection| sessions::record_use(connection, id, now)).await
    }

    async fn list_sessions(
        &self,
        organization_id: OrganizationId,
        idle_since: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<SessionEntry>, DatabaseError> {
        self.database
            .read(move |connection| sessions::list(connection, organization_id, idle_since, now))
            .await
    }

    async fn end_session(
        &self,
        organization_id: OrganizationId,
        id: SessionId,
    ) -> Result<bool, DatabaseError> {
        self.database.write(move |connection| sessions::end(connection, organization_id, id)).await
    }

    async fn page_retention(
        &self,
        after: Option<OrganizationId>,
        limit: usize,
    ) -> Result<Vec<RetentionRecord>, DatabaseError> {
        self.database.read(move |connection| retention::page(connection, after, limit)).await
    }

    async fn find_retention(&self, name: OrganizationName) -> Result<Option<RetentionRecord>, DatabaseError> {
        self.database.read(move |connection| retention::find(connection, &name)).await
    }

    async fn set_retention(
        &self,
        name: OrganizationName,
        change: RetentionChange,
    ) -> Result<Option<RetentionRecord>, DatabaseError> {
        self.database.write(move |connection| retention::set(connection, &name, change)).await
    }

    async fn prune_idempotency_records(&self, now: Timestamp) -> Result<usize, DatabaseError> {
        self.database.write(move |connection| idempotency::prune(connection, now)).await
    }

    async fn prune_sessions(&self, idle_since: Timestamp, now: Timestamp) -> Result<(), DatabaseError> {
        self.database.write(move |connection| sessions::prune(connection, idle_since, now)).await
    }
}
