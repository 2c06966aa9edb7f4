//! Finds the agents that a conversation refers to.

use assay_contracts::event::AgentFacts;
use assay_contracts::ids::{AgentId, OrganizationId};
use assay_contracts::internal::FindAgents;
use assay_platform::db::DatabaseError;

use crate::store::Store;

/// At most so many ids of either kind are looked up at once: a conversation has 50 messages.
pub const MAX_IDS: usize = 100;

/// Why nothing was looked up.
#[derive(Debug, thiserror::Error)]
pub enum FindAgentsError {
    /// More ids than [`MAX_IDS`].
    #[error("at most {MAX_IDS} ids and {MAX_IDS} external ids can be looked up at once")]
    TooMany,
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// The agents of the organization that have one of these ids or external ids. An id that is no UUID is nobody's.
///
/// # Errors
/// [`FindAgentsError`].
pub async fn find_agents(
    store: &dyn Store,
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
