//! `GET /internal/v1/retention`: retention periods for the maintenance of the other services.

use actix_web::HttpRequest;
use actix_web::web::{Data, Json};
use assay_contracts::internal::RetentionPage;
use assay_contracts::problem::ProblemCode;
use assay_platform::web::{Caller, WebError, query_pairs};

use super::Services;
use crate::app::list_retention;

/// A page of organizations; `?after=ID` continues after that one.
pub async fn page(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
) -> Result<Json<RetentionPage>, WebError> {
    caller.require_service()?;
    let query = query_pairs(&request, &["after"])?;
    let after = query.get("after").map(|text| text.parse()).transpose();
    let after = after.map_err(|_| WebError::new(ProblemCode::InvalidRequest, "after must be an id"))?;
    Ok(Json(list_retention::page(&services.store, services.default_retention, after).await?))
}
