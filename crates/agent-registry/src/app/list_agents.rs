//! Lists the agents of an organization.

use assay_contracts::agent::Agent;
use assay_contracts::ids::OrganizationId;
use assay_platform::db::DatabaseError;

use crate::store::Store;

/// Newest first, at most [`crate::store::MAX_LISTED_AGENTS`].
///
/// # Errors
/// When the database fails.
pub async fn list_agents(
    store: &dyn Store,
    organization_id: OrganizationId,
) -> Result<Vec<Agent>, DatabaseError> {
    store.list_agents(organization_id).await
}
