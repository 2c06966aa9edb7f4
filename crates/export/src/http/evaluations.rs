//! `/internal/v1/evaluations`: the gateway forwards lists and summaries to it.

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use assay_contracts::evaluations::{CountQuery, ListQuery, NeighboursQuery, SummaryQuery};
use assay_contracts::ids::OrganizationId;
use assay_contracts::internal::TicketCount;
use assay_contracts::problem::ProblemCode;
use assay_contracts::tenant::Scope;
use assay_platform::web::{
    Caller, WebError, all_query_pairs, invalid_parameter, invalid_query, respond_with_etag,
};

use super::Services;
use crate::app::find_neighbours::{FindNeighboursError, find_neighbours as find};
use crate::app::list_evaluations::{ListEvaluationsError, ReadContext, list_evaluations};
use crate::app::summarize_evaluations::{SummarizeError, count_evaluations, summarize_evaluations};

pub(super) async fn list(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
) -> Result<HttpResponse, WebError> {
    let organization_id = caller.tenant(Scope::EvaluationsRead)?.organization_id;
    let query = ListQuery::parse(all_query_pairs(&request)).map_err(invalid_query)?;
    let page = list_evaluations(read_context(&services, organization_id), &services.keys, query).await?;
    services.response_budget.limit(organization_id, respond_with_etag(&request, &page)?)
}

pub(super) async fn summarize(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
) -> Result<HttpResponse, WebError> {
    let organization_id = caller.tenant(Scope::EvaluationsRead)?.organization_id;
    let query = SummaryQuery::parse(all_query_pairs(&request)).map_err(invalid_query)?;
    let summary = summarize_evaluations(read_context(&services, organization_id), query).await?;
    services.response_budget.limit(organization_id, respond_with_etag(&request, &summary)?)
}

/// Number of evaluations of a period whose tickets have the id `since` or a later one. All of them are counted, so the response has no
/// `since` of its own.
pub(super) async fn count(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
) -> Result<Json<TicketCount>, WebError> {
    let organization_id = caller.tenant(Scope::EvaluationsRead)?.organization_id;
    let CountQuery { period, since } = CountQuery::parse(all_query_pairs(&request)).map_err(invalid_query)?;
    let count = count_evaluations(read_context(&services, organization_id), period, since).await?;
    Ok(Json(TicketCount { count, since: None }))
}

pub(super) async fn find_neighbours(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
    id: Path<String>,
) -> Result<HttpResponse, WebError> {
    let organization_id = caller.tenant(Scope::EvaluationsRead)?.organization_id;
    let query = NeighboursQuery::parse(all_query_pairs(&request)).map_err(invalid_query)?;
    respond_with_etag(&request, &find(read_context(&services, organization_id), &id, query).await?)
}

fn read_context(services: &Services, organization_id: OrganizationId) -> ReadContext<'_> {
    let Services { evaluations, days, read_permits, .. } = services;
    ReadContext { store: evaluations, days, permits: read_permits, organization_id }
}

impl From<ListEvaluationsError> for WebError {
    fn from(error: ListEvaluationsError) -> Self {
        match error {
            ListEvaluationsError::Cursor(_) => Self::new(
                ProblemCode::InvalidCursor,
                "a cursor belongs to one filter and one order: use `page_info.next_cursor` of an earlier page as it is, \
                 with the same parameters, or leave the cursor out",
            ),
            ListEvaluationsError::Database(cause) => cause.into(),
        }
    }
}

impl From<FindNeighboursError> for WebError {
    fn from(error: FindNeighboursError) -> Self {
        match error {
            FindNeighboursError::NotFound => Self::new(
                ProblemCode::TicketNotFound,
                "your organization has no ticket with this id, or none that is evaluated",
            ),
            FindNeighboursError::List(error) => error.into(),
        }
    }
}

impl From<SummarizeError> for WebError {
    fn from(error: SummarizeError) -> Self {
        match error {
            SummarizeError::Parts(error) => invalid_parameter("step", &error.to_string()),
            SummarizeError::Database(cause) => cause.into(),
        }
    }
}
