//! Finds the agents referenced by a conversation.

use assay_contracts::agent::AgentFacts;
use assay_contracts::ids::{AgentId, OrganizationId};
use assay_contracts::internal::FindAgents;
use assay_platform::db::DatabaseError;

use crate::store::Store;

/// Maximum number of ids of either kind: twice as many as the 50 messages of a conversation can have.
pub const MAX_IDS: usize = 100;

#[derive(Debug, thiserror::Error)]
pub enum FindAgentsError {
    #[error("at most {MAX_IDS} ids and {MAX_IDS} external ids can be looked up at once")]
    TooMany,
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// The agents of the organization with one of these ids or external ids. An id that is not a UUID matches none.
///
/// # Errors
/// [`FindAgentsError`].
pub async fn find_agents(
    store: &Store,
    organization_id: OrganizationId,
    wanted: FindAgents,
) -> Result<Vec<AgentFacts>, FindAgentsError> {
    if wanted.ids.len() > MAX_IDS || wanted.external_ids.len() > MAX_IDS {
        return Err(FindAgentsError::TooMany);
    }
    let ids: Vec<AgentId> = wanted.ids.iter().filter_map(|id| id.parse().ok()).collect();
    if ids.is_empty() && wanted.external_ids.is_empty() {
        return Ok(Vec::new());
    }
    Ok(store.find_agents(organization_id, ids, wanted.external_ids).await?)
}
