//! The store on PostgreSQL.

mod retention;

use assay_contracts::event::AgentFacts;
use assay_contracts::ids::{AgentId, ApiKeyId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_messaging::outbox;
use assay_platform::auth::ApiKeyHash;
use assay_platform::db::idempotency;
use assay_platform::db::{DatabaseError, Postgres};
use async_trait::async_trait;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{Array, BigInt, Binary, Nullable, Text, Uuid as SqlUuid};
use uuid::Uuid;

use super::rows::{ActiveKeyRow, AgentRow, KeyRow, RevocationRow};
use super::{AgentStored, AgentToStore, KeyStored, KeyToStore, MAX_LISTED_KEYS, Store};
use crate::domain::{
    ActiveKey, ExternalIdHash, KeyRecord, OrganizationName, RetentionChange, RetentionRecord, Revocation,
    USE_INTERVAL_MILLIS,
};

const INSERT_AGENT: &str = "
    INSERT INTO agents (id, organization_id, external_id, external_id_sha256, name, created_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (organization_id, external_id_sha256) DO NOTHING";

const FIND_AGENTS: &str = "
    SELECT id::text, external_id, name FROM agents
    WHERE organization_id = $1 AND (id = ANY ($2) OR external_id_sha256 = ANY ($3))
    LIMIT $4";

const FIND_ACTIVE_KEY: &str = "
    SELECT id::text, organization_id::text, scopes, last_used_at FROM api_keys
    WHERE key_sha256 = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)";

const RECORD_KEY_USE: &str = "
    UPDATE api_keys SET last_used_at = $2
    WHERE id = $1 AND (last_used_at IS NULL OR last_used_at <= $3)";

const INSERT_ORGANIZATION: &str =
    "INSERT INTO organizations (id, name, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING";

const INSERT_KEY: &str = "
    INSERT INTO api_keys (id, organization_id, key_sha256, name, scopes, created_at, expires_at)
    SELECT $1, organizations.id, $2, $3, $4, $5, $6 FROM organizations WHERE organizations.name = $7
    ON CONFLICT (key_sha256) DO NOTHING";

const FIND_KEY_BY_HASH: &str = "SELECT revoked_at FROM api_keys WHERE key_sha256 = $1";

const LIST_KEYS: &str = "
    SELECT api_keys.id::text, organizations.name AS organization, api_keys.name, api_keys.scopes,
           api_keys.created_at, api_keys.last_used_at, api_keys.expires_at, api_keys.revoked_at
    FROM api_keys JOIN organizations ON organizations.id = api_keys.organization_id
    WHERE $1::text IS NULL OR organizations.name = $1
    ORDER BY api_keys.id DESC LIMIT $2";

const REVOKE_KEY: &str = "UPDATE api_keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL";

const FIND_REVOCATION: &str = "SELECT revoked_at FROM api_keys WHERE id = $1";

pub struct PostgresStore {
    postgres: Postgres,
}

impl PostgresStore {
    pub fn new(postgres: Postgres) -> Self {
        Self { postgres }
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn create_agent(&self, new: AgentToStore) -> Result<AgentStored, DatabaseError> {
        self.postgres.run(move |connection| connection.transaction(|tx| create_agent(tx, &new))).await
    }

    async fn find_agents(
        &self,
        organization_id: OrganizationId,
        ids: Vec<AgentId>,
        external_ids: Vec<String>,
    ) -> Result<Vec<AgentFacts>, DatabaseError> {
        let work = move |connection: &mut PgConnection| {
            find_agents(connection, organization_id, &ids, &external_ids)
        };
        self.postgres.run(work).await
    }

    async fn find_active_key(
        &self,
        hash: ApiKeyHash,
        now: Timestamp,
    ) -> Result<Option<ActiveKey>, DatabaseError> {
        let work = move |connection: &mut PgConnection| -> Result<Option<ActiveKeyRow>, DatabaseError> {
            Ok(sql_query(FIND_ACTIVE_KEY)
                .bind::<Binary, _>(hash.as_bytes().as_slice())
                .bind::<BigInt, _>(now.as_millis())
                .get_result(connection)
                .optional()?)
        };
        self.postgres.run(work).await?.map(ActiveKeyRow::into_key).transpose()
    }

    async fn record_key_use(&self, id: ApiKeyId, now: Timestamp) -> Result<(), DatabaseError> {
        let work = move |connection: &mut PgConnection| -> Result<(), DatabaseError> {
            sql_query(RECORD_KEY_USE)
                .bind::<SqlUuid, _>(id.as_uuid())
                .bind::<BigInt, _>(now.as_millis())
                .bind::<BigInt, _>(now.as_millis() - USE_INTERVAL_MILLIS)
                .execute(connection)?;
            Ok(())
        };
        self.postgres.run(work).await
    }

    async fn create_key(&self, new: KeyToStore) -> Result<KeyStored, DatabaseError> {
        self.postgres.run(move |connection| connection.transaction(|tx| create_key(tx, &new))).await
    }

    async fn list_keys(
        &self,
        organization: Option<OrganizationName>,
    ) -> Result<Vec<KeyRecord>, DatabaseError> {
        let work = move |connection: &mut PgConnection| -> Result<Vec<KeyRow>, DatabaseError> {
            Ok(sql_query(LIST_KEYS)
                .bind::<Nullable<Text>, _>(organization.as_ref().map(OrganizationName::as_str))
                .bind::<BigInt, _>(MAX_LISTED_KEYS)
                .load(connection)?)
        };
        self.postgres.run(work).await?.into_iter().map(KeyRow::into_record).collect()
    }

    async fn revoke_key(&self, id: ApiKeyId, now: Timestamp) -> Result<Revocation, DatabaseError> {
        self.postgres.run(move |connection| connection.transaction(|tx| revoke_key(tx, id, now))).await
    }

    async fn page_retention(
        &self,
        after: Option<OrganizationId>,
        limit: usize,
    ) -> Result<Vec<RetentionRecord>, DatabaseError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.postgres.run(move |connection| retention::page(connection, after, limit)).await
    }

    async fn find_retention(&self, name: OrganizationName) -> Result<Option<RetentionRecord>, DatabaseError> {
        self.postgres.run(move |connection| retention::find(connection, &name)).await
    }

    async fn set_retention(
        &self,
        name: OrganizationName,
        change: RetentionChange,
    ) -> Result<Option<RetentionRecord>, DatabaseError> {
        self.postgres
            .run(move |connection| connection.transaction(|tx| retention::set(tx, &name, change)))
            .await
    }

    async fn prune(&self, now: Timestamp) -> Result<usize, DatabaseError> {
        self.postgres.run(move |connection| idempotency::prune(connection, now)).await
    }
}

/// The idempotency record comes first: it serializes equal requests.
fn create_agent(connection: &mut PgConnection, new: &AgentToStore) -> Result<AgentStored, DatabaseError> {
    let record = new.record.as_slice();
    let now = new.agent.created_at;
    if let Some(earlier) = idempotency::store(connection, record, now)?.into_iter().flatten().next() {
        return Ok(AgentStored::KeyReused(earlier));
    }
    let inserted = sql_query(INSERT_AGENT)
        .bind::<SqlUuid, _>(new.agent.id.as_uuid())
        .bind::<SqlUuid, _>(new.organization_id.as_uuid())
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

fn find_agents(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    ids: &[AgentId],
    external_ids: &[String],
) -> Result<Vec<AgentFacts>, DatabaseError> {
    let uuids: Vec<Uuid> = ids.iter().map(AgentId::as_uuid).collect();
    let hashes: Vec<Vec<u8>> =
        external_ids.iter().map(|id| ExternalIdHash::of(id).as_bytes().to_vec()).collect();
    // Both are unique: no more agents than ids can be found.
    let limit = i64::try_from(uuids.len() + hashes.len()).unwrap_or(i64::MAX);
    let rows: Vec<AgentRow> = sql_query(FIND_AGENTS)
        .bind::<SqlUuid, _>(organization_id.as_uuid())
        .bind::<Array<SqlUuid>, _>(uuids)
        .bind::<Array<Binary>, _>(hashes)
        .bind::<BigInt, _>(limit)
        .load(connection)?;
    rows.into_iter().map(AgentRow::into_facts).collect()
}

fn create_key(connection: &mut PgConnection, new: &KeyToStore) -> Result<KeyStored, DatabaseError> {
    let hash = new.hash.as_bytes().as_slice();
    let existing: Option<RevocationRow> =
        sql_query(FIND_KEY_BY_HASH).bind::<Binary, _>(hash).get_result(connection).optional()?;
    if existing.is_some() {
        return Ok(KeyStored::AlreadyExists);
    }
    sql_query(INSERT_ORGANIZATION)
        .bind::<SqlUuid, _>(new.new_organization_id.as_uuid())
        .bind::<Text, _>(new.organization.as_str())
        .bind::<BigInt, _>(new.created_at.as_millis())
        .execute(connection)?;
    let inserted = sql_query(INSERT_KEY)
        .bind::<SqlUuid, _>(new.id.as_uuid())
        .bind::<Binary, _>(hash)
        .bind::<Text, _>(new.name.as_str())
        .bind::<Text, _>(new.scopes.to_string())
        .bind::<BigInt, _>(new.created_at.as_millis())
        .bind::<Nullable<BigInt>, _>(new.expires_at.map(Timestamp::as_millis))
        .bind::<Text, _>(new.organization.as_str())
        .execute(connection)?;
    // Another process may have stored the same key since the look-up.
    Ok(if inserted == 0 { KeyStored::AlreadyExists } else { KeyStored::Created })
}

fn revoke_key(
    connection: &mut PgConnection,
    id: ApiKeyId,
    now: Timestamp,
) -> Result<Revocation, DatabaseError> {
    let revoked = sql_query(REVOKE_KEY)
        .bind::<SqlUuid, _>(id.as_uuid())
        .bind::<BigInt, _>(now.as_millis())
        .execute(connection)?;
    if revoked > 0 {
        return Ok(Revocation::Revoked);
    }
    let row: Option<RevocationRow> =
        sql_query(FIND_REVOCATION).bind::<SqlUuid, _>(id.as_uuid()).get_result(connection).optional()?;
    let revoked_at = row.and_then(|row| row.revoked_at).map(Timestamp::saturating_from_millis);
    Ok(revoked_at.map_or(Revocation::Unknown, Revocation::AlreadyRevoked))
}
