//! Lists, summaries and single conversations.

use assay_clients::{ClientError, count_pending};
use assay_contracts::evaluation::TicketEvaluation;
use assay_contracts::evaluations::{
    Coverage, EvaluationFilters, EvaluationPage, Neighbours, Summary, SummaryQuery, TicketTranscript,
};
use assay_contracts::ids::TicketId;
use assay_contracts::problem::ProblemCode;
use assay_contracts::refusal::{ImportRefusal, ImportRefusals};
use assay_platform::auth::ServiceClaims;

use super::services::Services;
use crate::domain::with_query;

/// A page of the list.
pub(crate) async fn list_evaluations(
    services: &Services,
    claims: &ServiceClaims,
    query: &[(&'static str, String)],
) -> Result<EvaluationPage, ClientError> {
    let path = with_query("/internal/v1/evaluations", query);
    services.export.get_json(claims, &path).await
}

/// A summary.
pub(crate) async fn summarize(
    services: &Services,
    claims: &ServiceClaims,
    query: &SummaryQuery,
) -> Result<Summary, ClientError> {
    services.export.get_json(claims, &with_query("/internal/v1/evaluations/summary", &query.to_pairs())).await
}

/// Imports by status.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImportCounts {
    pub(crate) coverage: Coverage,
    /// Whether more may be pending than are counted.
    pub(crate) is_cut: bool,
}

impl ImportCounts {
    /// What stands before the number of pending imports. A limited count that found none counts as complete: imports are evaluated
    /// about in their order, so older ones are evaluated, too.
    pub(crate) fn at_least(self) -> &'static str {
        if self.is_cut && self.coverage.pending > 0 { "at least " } else { "" }
    }
}

/// The imports of a summary's period by status, as in the public API. `None` when a filter other than the date is set, or
/// when the pending ones cannot be counted, because ingest is unavailable.
pub(crate) async fn count_imports(
    services: &Services,
    claims: &ServiceClaims,
    filters: &EvaluationFilters,
    summary: &Summary,
) -> Option<ImportCounts> {
    let coverage = summary.coverage?;
    match count_pending(&services.ingest, &services.export, claims, filters).await {
        Ok(pending) => {
            Some(ImportCounts { coverage: coverage.with_pending(pending.count), is_cut: pending.is_cut })
        }
        Err(error) => {
            tracing::warn!(cause = %error, "a page has no coverage: pending imports cannot be counted");
            None
        }
    }
}

/// The latest refused imports, newest first. `None` when they cannot be read, because ingest is unavailable.
pub(crate) async fn list_refusals(services: &Services, claims: &ServiceClaims) -> Option<Vec<ImportRefusal>> {
    let found: Result<ImportRefusals, ClientError> =
        services.ingest.get_json(claims, "/internal/v1/refusals").await;
    match found {
        Ok(found) => Some(found.refusals),
        Err(error) => {
            tracing::warn!(cause = %error, "refused imports cannot be listed");
            None
        }
    }
}

/// The position of a conversation in a result, with the previous and the next one.
pub(crate) async fn find_neighbours(
    services: &Services,
    claims: &ServiceClaims,
    id: TicketId,
    query: &[(&'static str, String)],
) -> Result<Neighbours, ClientError> {
    let path = with_query(&format!("/internal/v1/evaluations/{id}/neighbours"), query);
    services.export.get_json(claims, &path).await
}

/// The outcome of looking up a transcript.
pub(crate) enum TranscriptLookup {
    Kept(Box<TicketTranscript>),
    /// Removed at the end of its retention period; the evaluation is kept.
    Expired,
    /// Unknown, of another organization, or deleted.
    Unknown,
}

/// The transcript of a conversation.
pub(crate) async fn find_transcript(
    services: &Services,
    claims: &ServiceClaims,
    id: TicketId,
) -> Result<TranscriptLookup, ClientError> {
    let path = format!("/internal/v1/tickets/{id}/transcript");
    match services.ingest.get_json(claims, &path).await {
        Ok(transcript) => Ok(TranscriptLookup::Kept(Box::new(transcript))),
        Err(error) => match not_found_code(&error) {
            Some(ProblemCode::TranscriptExpired) => Ok(TranscriptLookup::Expired),
            Some(ProblemCode::TicketNotFound) => Ok(TranscriptLookup::Unknown),
            _ => Err(error),
        },
    }
}

/// The evaluation of a conversation; `None` when there is none, or none yet.
pub(crate) async fn find_evaluation(
    services: &Services,
    claims: &ServiceClaims,
    id: TicketId,
) -> Result<Option<TicketEvaluation>, ClientError> {
    match services.scoring.get_json(claims, &format!("/internal/v1/tickets/{id}/evaluation")).await {
        Ok(evaluation) => Ok(Some(evaluation)),
        Err(error) if not_found_code(&error) == Some(ProblemCode::TicketNotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The problem code of a 404.
fn not_found_code(error: &ClientError) -> Option<ProblemCode> {
    match error {
        ClientError::Refused { status: 404, problem: Some(problem), .. } => Some(problem.code),
        _ => None,
    }
}
