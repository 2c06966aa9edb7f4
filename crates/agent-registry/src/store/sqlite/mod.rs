//! The store on SQLite.

mod retention;

use assay_contracts::event::AgentFacts;
use assay_contracts::ids::{AgentId, ApiKeyId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_messaging::outbox;
use assay_platform::auth::ApiKeyHash;
use assay_platform::db::idempotency;
use assay_platform::db::{DatabaseError, Sqlite};
use async_trait::async_trait;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{BigInt, Binary, Nullable, Text};
use diesel::sqlite::SqliteConnection;

use super::rows::{ActiveKeyRow, AgentRow, KeyRow, RevocationRow};
use super::{AgentStored, AgentToStore, KeyStored, KeyToStore, MAX_LISTED_KEYS, Store};
use crate::domain::{
    ActiveKey, ExternalIdHash, KeyRecord, OrganizationName, RetentionChange, RetentionRecord, Revocation,
    USE_INTERVAL_MILLIS,
};

const INSERT_AGENT: &str = "
    INSERT INTO agents (id, organization_id, external_id, external_id_sha256, name, created_at)
    VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (organization_id, external_id_sha256) DO NOTHING";

const FIND_AGENT_BY_ID: &str =
    "SELECT id, external_id, name FROM agents WHERE organization_id = ? AND id = ?";

const FIND_AGENT_BY_EXTERNAL_ID: &str =
    "SELECT id, external_id, name FROM agents WHERE organization_id = ? AND external_id_sha256 = ?";

const FIND_ACTIVE_KEY: &str = "
    SELECT id, organization_id, scopes, last_used_at FROM api_keys
    WHERE key_sha256 = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)";

const RECORD_KEY_USE: &str = "
    UPDATE api_keys SET last_used_at = ?
    WHERE id = ? AND (last_used_at IS NULL OR last_used_at <= ?)";

const INSERT_ORGANIZATION: &str =
    "INSERT INTO organizations (id, name, created_at) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING";

const INSERT_KEY: &str = "
    INSERT INTO api_keys (id, organization_id, key_sha256, name, scopes, created_at, expires_at)
    SELECT ?, organizations.id, ?, ?, ?, ?, ? FROM organizations WHERE organizations.name = ?
    ON CONFLICT (key_sha256) DO NOTHING";

const FIND_KEY_BY_HASH: &str = "SELECT revoked_at FROM api_keys WHERE key_sha256 = ?";

const LIST_KEYS: &str = "
    SELECT api_keys.id, organizations.name AS organization, api_keys.name, api_keys.scopes,
           api_keys.created_at, api_keys.last_used_at, api_keys.expires_at, api_keys.revoked_at
    FROM api_keys JOIN organizations ON organizations.id = api_keys.organization_id
    WHERE organizations.name = coalesce(?, organizations.name)
    ORDER BY api_keys.id DESC LIMIT ?";

const REVOKE_KEY: &str = "UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL";

const FIND_REVOCATION: &str = "SELECT revoked_at FROM api_keys WHERE id = ?";

pub struct SqliteStore {
    sqlite: Sqlite,
}

impl SqliteStore {
    pub fn new(sqlite: Sqlite) -> Self {
        Self { sqlite }
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create_agent(&self, new: AgentToStore) -> Result<AgentStored, DatabaseError> {
        self.sqlite.write(move |tx| create_agent(tx, &new)).await
    }

    async fn find_agents(
        &self,
        organization_id: OrganizationId,
        ids: Vec<AgentId>,
        external_ids: Vec<String>,
    ) -> Result<Vec<AgentFacts>, DatabaseError> {
        let work = move |connection: &mut SqliteConnection| {
            find_agents(connection, organization_id, &ids, &external_ids)
        };
        self.sqlite.read(work).await
    }

    async fn find_active_key(
        &self,
        hash: ApiKeyHash,
        now: Timestamp,
    ) -> Result<Option<ActiveKey>, DatabaseError> {
        let work = move |connection: &mut SqliteConnection| -> Result<Option<ActiveKeyRow>, DatabaseError> {
            Ok(sql_query(FIND_ACTIVE_KEY)
                .bind::<Binary, _>(hash.as_bytes().as_slice())
                .bind::<BigInt, _>(now.as_millis())
                .get_result(connection)
                .optional()?)
        };
        self.sqlite.read(work).await?.map(ActiveKeyRow::into_key).transpose()
    }

    async fn record_key_use(&self, id: ApiKeyId, now: Timestamp) -> Result<(), DatabaseError> {
        let work = move |connection: &mut SqliteConnection| -> Result<(), DatabaseError> {
            sql_query(RECORD_KEY_USE)
                .bind::<BigInt, _>(now.as_millis())
                .bind::<Text, _>(id.to_string())
                .bind::<BigInt, _>(now.as_millis() - USE_INTERVAL_MILLIS)
                .execute(connection)?;
            Ok(())
        };
        self.sqlite.write(work).await
    }

    async fn create_key(&self, new: KeyToStore) -> Result<KeyStored, DatabaseError> {
        self.sqlite.write(move |tx| create_key(tx, &new)).await
    }

    async fn list_keys(
        &self,
        organization: Option<OrganizationName>,
    ) -> Result<Vec<KeyRecord>, DatabaseError> {
        let work = move |connection: &mut SqliteConnection| -> Result<Vec<KeyRow>, DatabaseError> {
            Ok(sql_query(LIST_KEYS)
                .bind::<Nullable<Text>, _>(organization.as_ref().map(OrganizationName::as_str))
                .bind::<BigInt, _>(MAX_LISTED_KEYS)
                .load(connection)?)
        };
        self.sqlite.read(work).await?.into_iter().map(KeyRow::into_record).collect()
    }

    async fn revoke_key(&self, id: ApiKeyId, now: Timestamp) -> Result<Revocation, DatabaseError> {
        self.sqlite.write(move |tx| revoke_key(tx, id, now)).await
    }

    async fn page_retention(
        &self,
        after: Option<OrganizationId>,
        limit: usize,
    ) -> Result<Vec<RetentionRecord>, DatabaseError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.sqlite.read(move |connection| retention::page(connection, after, limit)).await
    }

    async fn find_retention(&self, name: OrganizationName) -> Result<Option<RetentionRecord>, DatabaseError> {
        self.sqlite.read(move |connection| retention::find(connection, &name)).await
    }

    async fn set_retention(
        &self,
        name: OrganizationName,
        change: RetentionChange,
    ) -> Result<Option<RetentionRecord>, DatabaseError> {
        self.sqlite.write(move |tx| retention::set(tx, &name, change)).await
    }

    async fn prune(&self, now: Timestamp) -> Result<usize, DatabaseError> {
        self.sqlite.write(move |tx| idempotency::prune(tx, now)).await
    }
}

fn create_agent(connection: &mut SqliteConnection, new: &AgentToStore) -> Result<AgentStored, DatabaseError> {
    let record = new.record.as_slice();
    let now = new.agent.created_at;
    if let Some(earlier) = idempotency::store(connection, record, now)?.into_iter().flatten().next() {
        return Ok(AgentStored::KeyReused(earlier));
    }
    let inserted = sql_query(INSERT_AGENT)
        .bind::<Text, _>(new.agent.id.to_string())
        .bind::<Text, _>(new.organization_id.to_string())
        .bind::<Text, _>(&new.agent.external_id)
        .bind::<Binary, _>(ExternalIdHash::of(&new.agent.external_id).as_bytes().as_slice())
        .bind::<Text, _>(&new.agent.name)
        .bind::<BigInt, _>(now.as_millis())
        .execute(connection)?;
    if inserted == 0 {
        let keys: Vec<_> = record.iter().map(|record| (record.organization_id, &record.key)).collect();
        idempotency::delete(connection, &keys)?;
        return Ok(AgentStored::Duplicate);
    }
    outbox::enqueue(connection, std::slice::from_ref(&new.event), outbox::DirectDispatch::NONE)?;
    Ok(AgentStored::Created)
}

/// One query per id: in-process queries are cheap.
fn find_agents(
    connection: &mut SqliteConnection,
    organization_id: OrganizationId,
    ids: &[AgentId],
    external_ids: &[String],
) -> Result<Vec<AgentFacts>, DatabaseError> {
    let mut rows: Vec<AgentRow> = Vec::new();
    for id in ids {
        let query = sql_query(FIND_AGENT_BY_ID).bind::<Text, _>(organization_id.to_string());
        rows.extend(query.bind::<Text, _>(id.to_string()).load(connection)?);
    }
    for external_id in external_ids {
        let hash = ExternalIdHash::of(external_id);
        let query = sql_query(FIND_AGENT_BY_EXTERNAL_ID).bind::<Text, _>(organization_id.to_string());
        rows.extend(query.bind::<Binary, _>(hash.as_bytes().as_slice()).load(connection)?);
    }
    let mut agents = rows.into_iter().map(AgentRow::into_facts).collect::<Result<Vec<_>, _>>()?;
    agents.sort_unstable_by_key(|agent| agent.id);
    agents.dedup_by_key(|agent| agent.id);
    Ok(agents)
}

fn create_key(connection: &mut SqliteConnection, new: &KeyToStore) -> Result<KeyStored, DatabaseError> {
    let hash = new.hash.as_bytes().as_slice();
    let existing: Option<RevocationRow> =
        sql_query(FIND_KEY_BY_HASH).bind::<Binary, _>(hash).get_result(connection).optional()?;
    if existing.is_some() {
        return Ok(KeyStored::AlreadyExists);
    }
    sql_query(INSERT_ORGANIZATION)
        .bind::<Text, _>(new.new_organization_id.to_string())
        .bind::<Text, _>(new.organization.as_str())
        .bind::<BigInt, _>(new.created_at.as_millis())
        .execute(connection)?;
    let inserted = sql_query(INSERT_KEY)
        .bind::<Text, _>(new.id.to_string())
        .bind::<Binary, _>(hash)
        .bind::<Text, _>(new.name.as_str())
        .bind::<Text, _>(new.scopes.to_string())
        .bind::<BigInt, _>(new.created_at.as_millis())
        .bind::<Nullable<BigInt>, _>(new.expires_at.map(Timestamp::as_millis))
        .bind::<Text, _>(new.organization.as_str())
        .execute(connection)?;
    Ok(if inserted == 0 { KeyStored::AlreadyExists } else { KeyStored::Created })
}

fn revoke_key(
    connection: &mut SqliteConnection,
    id: ApiKeyId,
    now: Timestamp,
) -> Result<Revocation, DatabaseError> {
    let revoked = sql_query(REVOKE_KEY)
        .bind::<BigInt, _>(now.as_millis())
        .bind::<Text, _>(id.to_string())
        .execute(connection)?;
    if revoked > 0 {
        return Ok(Revocation::Revoked);
    }
    let row: Option<RevocationRow> =
        sql_query(FIND_REVOCATION).bind::<Text, _>(id.to_string()).get_result(connection).optional()?;
    let revoked_at = row.and_then(|row| row.revoked_at).map(Timestamp::saturating_from_millis);
    Ok(revoked_at.map_or(Revocation::Unknown, Revocation::AlreadyRevoked))
}
