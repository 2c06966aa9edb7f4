//! Lists the agents of an organization.

use assay_contracts::console::AgentList;
use assay_contracts::ids::{AgentId, OrganizationId};
use assay_contracts::validation::shortened;
use assay_platform::db::DatabaseError;

use crate::store::Store;

/// Maximum characters of a name and of an external id in the list: a thousand agents stay below a megabyte.
const MAX_LISTED_CHARS: usize = 100;

/// Newest first, at most [`crate::store::MAX_LISTED_AGENTS`], with shortened names and external ids; with `before` those that were
/// registered before this agent.
///
/// # Errors
/// When the database fails.
pub async fn list_agents(
    store: &Store,
    organization_id: OrganizationId,
    before: Option<AgentId>,
) -> Result<AgentList, DatabaseError> {
    let (mut agents, total) = store.list_agents(organization_id, before).await?;
    for agent in &mut agents {
        agent.name = shortened(&agent.name, MAX_LISTED_CHARS);
        agent.external_id = shortened(&agent.external_id, MAX_LISTED_CHARS);
    }
    Ok(AgentList { agents, total: Some(total) })
}
