//! `GET /internal/v1/interest`: the organizations with a webhook for evaluations.

use actix_web::web::Json;
use assay_contracts::internal::SubscribersPage;
use assay_contracts::problem::ProblemCode;
use assay_platform::web::{WebError, query_pairs};

use super::Call;
use crate::app::list_evaluation_subscribers;

/// A page of organizations; `?after=ID` continues after that one.
pub(super) async fn page(call: Call) -> Result<Json<SubscribersPage>, WebError> {
    call.caller.require_service()?;
    let query = query_pairs(&call.request, &["after"])?;
    let after = query.get("after").map(|text| text.parse()).transpose();
    let after = after.map_err(|_| WebError::new(ProblemCode::InvalidRequest, "after must be an id"))?;
    Ok(Json(list_evaluation_subscribers(&call.services.store, after).await?))
}
