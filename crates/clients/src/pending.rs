//! Counts the imports that are not evaluated yet: ingest knows the imports, export the evaluations.

use assay_contracts::evaluations::{EvaluationFilters, encode_query};
use assay_contracts::ids::TicketId;
use assay_contracts::internal::TicketCount;
use assay_platform::auth::ServiceClaims;
use assay_platform::runtime::now;

use crate::error::ClientError;
use crate::service::ServiceClient;

/// How long an import may be pending. Older ones without an evaluation were given up.
const PENDING_MILLIS: i64 = 7 * 24 * 60 * 60 * 1_000;

/// The pending imports of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingImports {
    /// The number.
    pub count: u64,
    /// Whether older imports of the last seven days were left out of the count, so that more may be pending.
    pub is_cut: bool,
}

/// Counts the pending imports of a period: recent tickets of ingest minus those that export has. Of very many imports ingest
/// counts only the newest: imports are evaluated about in their order, so these are the ones that may be pending.
///
/// # Errors
/// When ingest or export is unreachable or responds with an error.
pub async fn count_pending(
    ingest: &ServiceClient,
    export: &ServiceClient,
    claims: &ServiceClaims,
    period: &EvaluationFilters,
) -> Result<PendingImports, ClientError> {
    let query_since =
        |since: TicketId| encode_query(period.to_pairs().into_iter().chain([("since", since.to_string())]));
    let since = TicketId::min_at(now().plus_millis(-PENDING_MILLIS));
    // ingest first: an import that is evaluated between the two calls then counts as evaluated.
    let path = format!("/internal/v1/tickets?{}", query_since(since));
    let imported: TicketCount = ingest.get_json(claims, &path).await?;
    let query = query_since(imported.since.unwrap_or(since));
    let evaluated: TicketCount =
        export.get_json(claims, &format!("/internal/v1/evaluations/count?{query}")).await?;
    Ok(PendingImports {
        count: imported.count.saturating_sub(evaluated.count),
        is_cut: imported.since.is_some(),
    })
}
