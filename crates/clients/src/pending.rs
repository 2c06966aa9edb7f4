//! Counts the imports that are not evaluated yet: ingest knows the imports, export the evaluations.

use assay_contracts::evaluations::{EvaluationFilters, encode_query};
use assay_contracts::ids::TicketId;
use assay_contracts::internal::TicketCount;
use assay_platform::auth::ServiceClaims;
use assay_platform::runtime::now;

use crate::error::ClientError;
use crate::service::ServiceClient;

/// Imports older than this are not counted as pending, evaluated or not.
const PENDING_WINDOW_MILLIS: i64 = 7 * 24 * 60 * 60 * 1_000;

/// The pending imports of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingImports {
    /// The number.
    pub count: u64,
    /// Whether more may be pending: ingest counted only the newest imports.
    pub is_lower_bound: bool,
}

/// Counts the pending imports of a period: recent tickets of ingest minus those that export has. Of very many imports ingest
/// counts only the newest: imports are evaluated roughly in the order in which they arrive, so these may be pending.
///
/// # Errors
/// When ingest or export is unreachable or responds with an error.
pub async fn count_pending(
    ingest: &ServiceClient,
    export: &ServiceClient,
    claims: &ServiceClaims,
    filters: &EvaluationFilters,
) -> Result<PendingImports, ClientError> {
    let query_since =
        |since: TicketId| encode_query(filters.to_pairs().into_iter().chain([("since", since.to_string())]));
    let since = TicketId::min_at(now().plus_millis(-PENDING_WINDOW_MILLIS));
    // ingest first: an import that is evaluated between the two calls then counts as evaluated.
    let path = format!("/internal/v1/tickets?{}", query_since(since));
    let imported: TicketCount = ingest.get_json(claims, &path).await?;
    let query = query_since(imported.since.unwrap_or(since));
    let evaluated: TicketCount =
        export.get_json(claims, &format!("/internal/v1/evaluations/count?{query}")).await?;
    Ok(PendingImports {
        count: imported.count.saturating_sub(evaluated.count),
        is_lower_bound: imported.since.is_some(),
    })
}
