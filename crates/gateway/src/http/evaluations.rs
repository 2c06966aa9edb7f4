//! `/v1/evaluations…`: lists and summaries, and the neighbours of a ticket in a list.

use actix_web::HttpResponse;
use actix_web::web::Path;
use assay_clients::count_pending;
use assay_contracts::evaluations::{
    Comparison, Dimension, EvaluationPage, Neighbours, Sort, Step, Summary, SummaryQuery,
};
use assay_contracts::ids::TicketId;
use assay_contracts::problem::ProblemCode;
use assay_platform::web::{WebError, all_query_pairs, respond_with_etag};

use super::context::{path_id, with_query};
use super::filter_parameters::FilterParameters;
use super::keyed_request::{KeyedRequest, read_answer};
use super::responses::{BadRequest, CommonProblems, IfNoneMatchHeader, NotFound};
use crate::app::{ServiceCall, forward};

/// List evaluations
///
/// One row a ticket, with the evaluation that is shown of it; newest conversations first unless `sort` says otherwise. Repeated
/// parameters mean "or", different ones "and"; all faults of a query are answered at once. A cursor holds while evaluations arrive
/// and are deleted: no row is skipped or repeated. `total` is exact, but stops at 2,000 for filters by `subject`, `search` and
/// `external_id`, and while days with many evaluations change. Needs the scope `evaluations:read`.
#[utoipa::path(
    get,
    path = "/v1/evaluations",
    operation_id = "listEvaluations",
    tag = "Evaluations",
    params(
        FilterParameters,
        ("sort" = inline(Option<Sort>), Query, description = "Order, with a `-` in front from the highest; `-started_at` when left out. Rows without a value, also those whose charge is `not_applicable`, come last"),
        ("cursor" = Option<String>, Query, min_length = 1, description = "Opaque cursor of a previous page of the same filters and order"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Items at most; 20 when left out"),
        IfNoneMatchHeader,
    ),
    responses(
        (status = 200, description = "A page of evaluations", body = EvaluationPage, headers(("ETag" = String, description = "For `If-None-Match`"))),
        (status = 304, description = "Unchanged since the response with the `ETag` of `If-None-Match`"),
        BadRequest,
        CommonProblems,
    ),
)]
pub(crate) async fn list_evaluations(request: KeyedRequest) -> Result<HttpResponse, WebError> {
    request.occupy_slot()?;
    forward(get(&request, &with_query("/internal/v1/evaluations", &request.http))).await
}

/// Summarize evaluations
///
/// Counts, means and distributions of the evaluations that the filters select, by day, week or quarter, and by one or two dimensions: the
/// numbers are those of the list with the same filters. Days are those of UTC. Needs the scope `evaluations:read`.
#[utoipa::path(
    get,
    path = "/v1/evaluations/summary",
    operation_id = "summarizeEvaluations",
    tag = "Evaluations",
    params(
        FilterParameters,
        ("by" = Option<Vec<Dimension>>, Query, description = "Dimension of a breakdown, at most two, the outer one first"),
        ("step" = inline(Option<Step>), Query, description = "Parts of a series: `day`, `week` or `quarter` (thirteen weeks); whole weeks together where a period with an open end would have more than 800"),
        ("compare" = inline(Option<Comparison>), Query, description = "Period to compare with: `previous`, of the same length, or the same dates a `year` before; needs `from` and `to`"),
        IfNoneMatchHeader,
    ),
    responses(
        (status = 200, description = "The summary", body = Summary, headers(("ETag" = String, description = "For `If-None-Match`"))),
        (status = 304, description = "Unchanged since the response with the `ETag` of `If-None-Match`"),
        BadRequest,
        CommonProblems,
    ),
)]
pub(crate) async fn summarize_evaluations(request: KeyedRequest) -> Result<HttpResponse, WebError> {
    request.occupy_slot()?;
    let path = with_query("/internal/v1/evaluations/summary", &request.http);
    let filters = SummaryQuery::parse(all_query_pairs(&request.http)).map(|query| query.filters);
    let period = match filters {
        Ok(filters) if filters.is_period_only() => filters,
        // Any other query goes to export alone, which also refuses invalid ones.
        _ => return forward(get(&request, &path)).await,
    };
    let gateway = &request.gateway;
    // Without `If-None-Match`: the summary's tag depends on the pending imports, too.
    let (pending, response) = tokio::join!(
        count_pending(&gateway.ingest, &gateway.export, &request.caller.claims, &period),
        forward(request.get(&gateway.export, &path, &[]))
    );
    let response = response?;
    if !response.status().is_success() {
        return Ok(response);
    }
    let mut summary: Summary = read_answer(response).await?;
    summary.coverage = match pending {
        Ok(pending) => summary.coverage.map(|coverage| coverage.with_pending(pending.count)),
        Err(error) => {
            tracing::warn!(cause = %error, "a summary has no coverage: pending imports cannot be counted");
            None
        }
    };
    respond_with_etag(&request.http, &summary)
}

/// Get a ticket's neighbours in a list
///
/// The tickets before and after it in the list of the same filters and order. Needs the scope `evaluations:read`.
#[utoipa::path(
    get,
    path = "/v1/tickets/{id}/neighbours",
    operation_id = "getNeighbours",
    tag = "Evaluations",
    params(
        ("id" = String, Path, description = "Ticket id, as in the import's receipt"),
        FilterParameters,
        ("sort" = inline(Option<Sort>), Query, description = "Order, as in the list of evaluations"),
        IfNoneMatchHeader,
    ),
    responses(
        (status = 200, description = "The neighbours", body = Neighbours, headers(("ETag" = String, description = "For `If-None-Match`"))),
        (status = 304, description = "Unchanged since the response with the `ETag` of `If-None-Match`"),
        BadRequest,
        NotFound,
        CommonProblems,
    ),
)]
pub(crate) async fn get_neighbours(
    request: KeyedRequest,
    id: Path<String>,
) -> Result<HttpResponse, WebError> {
    request.occupy_slot()?;
    let id: TicketId = path_id(&id, ProblemCode::TicketNotFound)?;
    let path = format!("/internal/v1/evaluations/{id}/neighbours");
    forward(get(&request, &with_query(&path, &request.http))).await
}

fn get<'a>(request: &'a KeyedRequest, path: &'a str) -> ServiceCall<'a> {
    request.get(&request.gateway.export, path, &["if-none-match"])
}
