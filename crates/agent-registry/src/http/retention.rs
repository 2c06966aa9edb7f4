//! `GET /internal/v1/retention`: retention periods for the maintenance of the other services.

use actix_web::web::Json;
use assay_contracts::internal::RetentionPage;
use assay_contracts::problem::ProblemCode;
use assay_platform::web::{WebError, query_pairs};

use super::Call;
use crate::app::list_retention;

/// A page of organizations; `?after=ID` continues after that one.
pub async fn page(call: Call) -> Result<Json<RetentionPage>, WebError> {
    call.caller.require_service()?;
    let query = query_pairs(&call.request, &["after"])?;
    let after = query.get("after").map(|text| text.parse()).transpose();
    let after = after.map_err(|_| WebError::new(ProblemCode::InvalidRequest, "after must be an id"))?;
    Ok(Json(list_retention::page(&call.services.store, call.services.default_retention, after).await?))
}
