//! `/internal/v1/keys`: resolution of API keys for the gateway; list, creation and revocation for the console.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path, Payload};
use assay_contracts::console::{KeyEntry, KeyList, NewKey, NewKeyRequest};
use assay_contracts::ids::ApiKeyId;
use assay_contracts::internal::{ResolveKey, ResolvedKey};
use assay_contracts::problem::{Problem, ProblemCode};
use assay_contracts::tenant::Scope;
use assay_contracts::validation::FieldError;
use assay_platform::auth::ApiKeyHash;
use assay_platform::runtime::now;
use assay_platform::web::WebError;

use super::{Call, read_before, read_service_body};
use crate::app::create_key::{CreateKeyError, create_for_owner};
use crate::app::resolve_key::resolve_key;
use crate::domain::{KeyName, KeyRecord};
use crate::store::KeyOwner;

pub async fn resolve(call: Call, payload: Payload) -> Result<Json<ResolvedKey>, WebError> {
    call.caller.require_service()?;
    let body: ResolveKey = read_service_body(&call, payload).await?;
    let hash = ApiKeyHash::from_hex(&body.key_sha256).ok_or_else(|| {
        WebError::new(ProblemCode::InvalidRequest, "key_sha256 must have 64 hexadecimal digits")
    })?;
    let grant = resolve_key(&call.services.store, &call.services.key_uses, hash).await?;
    Ok(Json(ResolvedKey { grant }))
}

/// The keys of the organization, newest first; with `?before=ID` those created before this one.
pub async fn list(call: Call) -> Result<Json<KeyList>, WebError> {
    let organization_id = call.organization_with(Scope::Console)?;
    let before = read_before(&call.request)?;
    let keys = call.services.store.list_organization_keys(organization_id, before).await?;
    Ok(Json(KeyList { keys: keys.into_iter().map(entry).collect() }))
}

/// Creates a key for the organization: 201 with the key, which is not shown again. A key can do nothing that its creator cannot.
pub async fn create(call: Call, payload: Payload) -> Result<HttpResponse, WebError> {
    let creator = call.caller.tenant(Scope::Console)?;
    let body: NewKeyRequest = read_service_body(&call, payload).await?;
    let name = KeyName::parse(&body.name).map_err(|error| invalid_field("/name", error.to_string()))?;
    if body.scopes.is_empty() {
        return Err(invalid_field("/scopes", "must name at least one scope".to_owned()));
    }
    let beyond = body.scopes.without(&creator.scopes);
    if !beyond.is_empty() {
        let detail = format!("the caller does not have these scopes and cannot grant them: {beyond}");
        return Err(WebError::new(ProblemCode::Forbidden, detail));
    }
    let owner = KeyOwner::Existing(creator.organization_id);
    let created = create_for_owner(&call.services.store, owner, name, body.scopes, body.expires_at).await?;
    let answer = NewKey { id: created.id, key: created.key.reveal().to_owned() };
    Ok(HttpResponse::Created().json(answer))
}

/// Revokes a key of the organization: 204, also when it was revoked before or there is none with this id.
pub async fn revoke(call: Call, id: Path<String>) -> Result<HttpResponse, WebError> {
    let organization_id = call.organization_with(Scope::Console)?;
    let id: ApiKeyId =
        id.parse().map_err(|_| WebError::new(ProblemCode::InvalidRequest, "the id is not a key id"))?;
    call.services.store.revoke_key(id, Some(organization_id), now()).await?;
    Ok(HttpResponse::NoContent().finish())
}

fn entry(key: KeyRecord) -> KeyEntry {
    KeyEntry {
        id: key.id,
        name: key.name,
        scopes: key.scopes,
        created_at: key.created_at,
        last_used_at: key.last_used_at,
        expires_at: key.expires_at,
        revoked_at: key.revoked_at,
    }
}

fn invalid_field(pointer: &str, detail: String) -> WebError {
    let error = FieldError { pointer: pointer.to_owned(), detail: detail.clone() };
    Problem::new(ProblemCode::InvalidRequest, format!("{pointer} {detail}")).with_errors(vec![error]).into()
}

impl From<CreateKeyError> for WebError {
    fn from(error: CreateKeyError) -> Self {
        match error {
            CreateKeyError::ExpiresInThePast(_) => invalid_field("/expires_at", "has passed".to_owned()),
            CreateKeyError::Database(cause) => cause.into(),
            CreateKeyError::Duplicate | CreateKeyError::Randomness(_) => Self::internal(&error),
        }
    }
}
