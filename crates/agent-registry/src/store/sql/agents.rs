//! Agents.

use assay_contracts::agent::{Agent, AgentFacts, AgentType};
use assay_contracts::ids::{AgentId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_messaging::outbox::{Connection as _, FastPathClaim};
use assay_platform::db::idempotency::Connection as _;
use assay_platform::db::{DatabaseError, StoredId};
use diesel::prelude::*;

use super::Connection;
use super::schema::agents;
use crate::domain::ExternalIdHash;
use crate::store::{AgentToStore, MAX_LISTED_AGENTS, StoreAgentOutcome};

/// Call inside a write transaction. The idempotency record is stored first, because it serializes equal requests.
pub fn create(connection: &mut Connection, new: &AgentToStore) -> Result<StoreAgentOutcome, DatabaseError> {
    let record = new.record.as_slice();
    let now = new.agent.created_at;
    if let Some(earlier) = connection.store_keys(record, now)?.into_iter().flatten().next() {
        return Ok(StoreAgentOutcome::IdempotencyKeyReused(earlier));
    }
    let hash = ExternalIdHash::of(&new.agent.external_id);
    let inserted = diesel::insert_into(agents::table)
        .values((
            agents::id.eq(StoredId::of(new.agent.id)),
            agents::organization_id.eq(StoredId::of(new.organization_id)),
            agents::external_id.eq(&new.agent.external_id),
            agents::external_id_sha256.eq(hash.as_bytes().as_slice()),
            agents::name.eq(&new.agent.name),
            agents::created_at.eq(now.as_millis()),
        ))
        .on_conflict((agents::organization_id, agents::external_id_sha256))
        .do_nothing()
        .execute(connection)?;
    if inserted == 0 {
        // A refused request does not use up its key.
        let keys: Vec<_> = record.iter().map(|record| (record.organization_id, &record.key)).collect();
        connection.delete_keys(&keys)?;
        return Ok(StoreAgentOutcome::Duplicate);
    }
    connection.enqueue_events(std::slice::from_ref(&new.event), FastPathClaim::NONE)?;
    Ok(StoreAgentOutcome::Created)
}

/// The query needs no limit: ids and external ids are unique, so no more agents than ids are found. It has two branches, each
/// with an index; `UNION` removes the duplicates.
pub fn find(
    connection: &mut Connection,
    organization_id: OrganizationId,
    ids: &[AgentId],
    external_ids: &[String],
) -> Result<Vec<AgentFacts>, DatabaseError> {
    let hashes: Vec<_> = external_ids.iter().map(|id| ExternalIdHash::of(id)).collect();
    let columns = (agents::id, agents::external_id, agents::name);
    let of_organization = agents::organization_id.eq(StoredId::of(organization_id));
    let by_id = agents::id.eq_any(ids.iter().copied().map(StoredId::of));
    let by_external_id =
        agents::external_id_sha256.eq_any(hashes.iter().map(|hash| hash.as_bytes().as_slice()));
    let found: Vec<(StoredId, String, String)> = agents::table
        .filter(of_organization.and(by_id))
        .select(columns)
        .union(agents::table.filter(of_organization.and(by_external_id)).select(columns))
        .load(connection)?;
    let found = found.into_iter();
    Ok(found.map(|(id, external_id, name)| AgentFacts { id: id.0.into(), external_id, name }).collect())
}

pub fn list(
    connection: &mut Connection,
    organization_id: OrganizationId,
    before: Option<AgentId>,
) -> Result<(Vec<Agent>, u64), DatabaseError> {
    let of_organization = agents::organization_id.eq(StoredId::of(organization_id));
    let total: i64 = agents::table.filter(of_organization).count().get_result(connection)?;
    let mut listed = agents::table.filter(of_organization).into_boxed();
    if let Some(before) = before {
        listed = listed.filter(agents::id.lt(StoredId::of(before)));
    }
    let rows: Vec<(StoredId, String, String, i64)> = listed
        .order(agents::id.desc())
        .limit(MAX_LISTED_AGENTS)
        .select((agents::id, agents::external_id, agents::name, agents::created_at))
        .load(connection)?;
    let agent = |(id, external_id, name, created_at): (StoredId, String, String, i64)| Agent {
        id: id.0.into(),
        external_id,
        name,
        agent_type: AgentType::Custom,
        created_at: Timestamp::saturating_from_millis(created_at),
    };
    Ok((rows.into_iter().map(agent).collect(), u64::try_from(total).unwrap_or_default()))
}
