//! `/internal/v1/keys`: resolution of API keys for the gateway.

use actix_web::HttpRequest;
use actix_web::web::{Data, Json, Payload};
use assay_contracts::internal::{ResolveKey, ResolvedKey};
use assay_contracts::problem::ProblemCode;
use assay_platform::auth::ApiKeyHash;
use assay_platform::web::{Caller, WebError};

use super::{Services, read_as};
use crate::app::resolve_key::resolve_key;

pub async fn resolve(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
    payload: Payload,
) -> Result<Json<ResolvedKey>, WebError> {
    caller.require_service()?;
    let body: ResolveKey = read_as(&request, payload).await?;
    let hash = ApiKeyHash::from_hex(&body.key_sha256).ok_or_else(|| {
        WebError::new(ProblemCode::InvalidRequest, "key_sha256 must have 64 hexadecimal digits")
    })?;
    let grant = resolve_key(services.store.as_ref(), &services.key_uses, hash).await?;
    Ok(Json(ResolvedKey { grant }))
}
