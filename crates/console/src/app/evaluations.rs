//! Lists, summaries and single conversations.

use assay_clients::{ClientError, count_pending};
use assay_contracts::evaluation::TicketEvaluation;
use assay_contracts::evaluations::{
    Coverage, EvaluationFilters, EvaluationPage, Neighbours, Summary, SummaryQuery, TicketTranscript,
};
use assay_contracts::ids::TicketId;
use assay_contracts::problem::ProblemCode;
use assay_contracts::refusal::{ImportRefusal, ImportRefusals};

use super::services::{OrganizationServices, Services};
use crate::domain::with_query;

/// Imports by status.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImportCounts {
    pub(crate) coverage: Coverage,
    /// Whether more may be pending than are counted.
    pub(crate) is_lower_bound: bool,
}

impl ImportCounts {
    /// "at least " before the number of pending imports if more may be pending, otherwise empty. If the limited count found none, none
    /// is assumed: imports are evaluated about in their order, so those that it left out are evaluated, too.
    pub(crate) fn at_least(self) -> &'static str {
        if self.is_lower_bound && self.coverage.pending > 0 { "at least " } else { "" }
    }
}

pub(crate) enum TranscriptLookup {
    Kept(Box<TicketTranscript>),
    /// Removed at the end of its retention period; the evaluation is kept.
    Expired,
    /// Unknown, of another organization, or deleted.
    Unknown,
}

impl OrganizationServices<'_> {
    pub(crate) async fn list_evaluations(
        self,
        query: &[(&'static str, String)],
    ) -> Result<EvaluationPage, ClientError> {
        let path = with_query("/internal/v1/evaluations", query);
        self.services.export.get_json(self.claims, &path).await
    }

    pub(crate) async fn summarize(self, query: &SummaryQuery) -> Result<Summary, ClientError> {
        let path = with_query("/internal/v1/evaluations/summary", &query.to_pairs());
        self.services.export.get_json(self.claims, &path).await
    }

    /// The imports of a summary's period by status, as in the public API. `None` when a filter other than the date is set, or
    /// when the pending ones cannot be counted, because ingest is unavailable.
    pub(crate) async fn count_imports(
        self,
        filters: &EvaluationFilters,
        summary: &Summary,
    ) -> Option<ImportCounts> {
        let coverage = summary.coverage?;
        let Services { ingest, export, .. } = self.services;
        match count_pending(ingest, export, self.claims, filters).await {
            Ok(pending) => Some(ImportCounts {
                coverage: coverage.with_pending(pending.count),
                is_lower_bound: pending.is_lower_bound,
            }),
            Err(error) => {
                tracing::warn!(cause = %error, "a page has no coverage: pending imports cannot be counted");
                None
            }
        }
    }

    /// The latest refused imports, newest first. `None` when they cannot be read, because ingest is unavailable.
    pub(crate) async fn list_refusals(self) -> Option<Vec<ImportRefusal>> {
        match self.services.ingest.get_json::<ImportRefusals>(self.claims, "/internal/v1/refusals").await {
            Ok(found) => Some(found.refusals),
            Err(error) => {
                tracing::warn!(cause = %error, "refused imports cannot be listed");
                None
            }
        }
    }

    /// The position of a conversation in a result, with the previous and the next one.
    pub(crate) async fn find_neighbours(
        self,
        id: TicketId,
        query: &[(&'static str, String)],
    ) -> Result<Neighbours, ClientError> {
        let path = with_query(&format!("/internal/v1/evaluations/{id}/neighbours"), query);
        self.services.export.get_json(self.claims, &path).await
    }

    pub(crate) async fn find_transcript(self, id: TicketId) -> Result<TranscriptLookup, ClientError> {
        let path = format!("/internal/v1/tickets/{id}/transcript");
        match self.services.ingest.get_json(self.claims, &path).await {
            Ok(transcript) => Ok(TranscriptLookup::Kept(Box::new(transcript))),
            Err(error) => match not_found_code(&error) {
                Some(ProblemCode::TranscriptExpired) => Ok(TranscriptLookup::Expired),
                Some(ProblemCode::TicketNotFound) => Ok(TranscriptLookup::Unknown),
                _ => Err(error),
            },
        }
    }

    /// The evaluation of a conversation; `None` when there is none, or none yet.
    pub(crate) async fn find_evaluation(self, id: TicketId) -> Result<Option<TicketEvaluation>, ClientError> {
        let path = format!("/internal/v1/tickets/{id}/evaluation");
        match self.services.scoring.get_json(self.claims, &path).await {
            Ok(evaluation) => Ok(Some(evaluation)),
            Err(error) if not_found_code(&error) == Some(ProblemCode::TicketNotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The problem code of a 404.
fn not_found_code(error: &ClientError) -> Option<ProblemCode> {
    match error {
        ClientError::ErrorStatus { status: 404, problem: Some(problem), .. } => Some(problem.code),
        _ => None,
    }
}
