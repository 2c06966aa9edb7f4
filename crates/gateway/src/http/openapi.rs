//! The OpenAPI 3.1 document of the public API, generated from the handlers' annotations.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use actix_web::http::header::{ContentType, ETag, EntityTag, Header, IfNoneMatch};
use actix_web::{HttpRequest, HttpResponse};
use assay_contracts::problem::Problem;
use assay_platform::web::{WebError, chunked_body};
use bytes::Bytes;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::{Modify, OpenApi, ToSchema};

use super::examples::{Examples, operations};
use super::responses::PublicProblems;
use super::{agents, assess, downloads, evaluations, exports, tickets, webhook_deliveries, webhooks};

pub fn document() -> Document {
    ApiDocument::openapi()
}

/// This document
#[utoipa::path(
    get,
    path = "/openapi.json",
    operation_id = "getOpenApi",
    tag = "Service",
    responses((status = 200, description = "OpenAPI 3.1", body = serde_json::Value), PublicProblems)
)]
pub(crate) async fn serve(request: HttpRequest) -> Result<HttpResponse, WebError> {
    let Published { document, etag } = PUBLISHED.as_ref().map_err(|error| WebError::internal(error))?;
    let is_known = match IfNoneMatch::parse(&request) {
        Ok(IfNoneMatch::Any) => true,
        Ok(IfNoneMatch::Items(known)) => known.iter().any(|known| known.weak_eq(etag)),
        Err(_) => false,
    };
    if is_known {
        return Ok(HttpResponse::NotModified().insert_header(ETag(etag.clone())).finish());
    }
    // Chunked: a client without a key that does not read must not pin a copy of the whole document.
    Ok(HttpResponse::Ok()
        .insert_header(ETag(etag.clone()))
        .content_type(ContentType::json())
        .body(chunked_body(document.clone())))
}

/// The document as it is served. Every process of a release has the same.
struct Published {
    document: Bytes,
    etag: EntityTag,
}

static PUBLISHED: LazyLock<Result<Published, serde_json::Error>> = LazyLock::new(|| {
    let document = serde_json::to_vec(&document())?;
    let mut hasher = DefaultHasher::new();
    document.hash(&mut hasher);
    let etag = EntityTag::new_strong(format!("{:016x}", hasher.finish()));
    Ok(Published { document: document.into(), etag })
});

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Assay",
        version = "1.0.0",
        description = "Scores customer-support conversations and audits what AI agents really resolved.\n\nEvery GET operation also \
                       answers HEAD. In bodies `null` counts as absent, and unknown fields are ignored, except in `filters`.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    paths(
        assess::assess,
        agents::create_agent,
        exports::create_export,
        exports::list_exports,
        exports::get_export,
        exports::download_export,
        downloads::download_file,
        tickets::get_ticket,
        tickets::delete_ticket,
        tickets::get_evaluation,
        tickets::get_transcript,
        evaluations::list_evaluations,
        evaluations::summarize_evaluations,
        evaluations::get_neighbours,
        webhooks::create_webhook,
        webhooks::list_webhooks,
        webhooks::get_webhook,
        webhooks::change_webhook,
        webhooks::delete_webhook,
        webhooks::get_webhook_secret,
        webhooks::rotate_webhook_secret,
        webhook_deliveries::test_webhook,
        webhook_deliveries::list_webhook_deliveries,
        webhook_deliveries::get_webhook_delivery,
        webhook_deliveries::replay_webhook_delivery,
        serve,
        healthz,
        readyz,
    ),
    components(schemas(Problem)),
    modifiers(&ApiKeys, &Examples),
)]
struct ApiDocument;

/// The API key of every operation of `/v1`, but for files, whose address is signed.
struct ApiKeys;

impl Modify for ApiKeys {
    fn modify(&self, document: &mut Document) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("An API key of your organization: `Authorization: Bearer <key>`"))
            .build();
        if let Some(components) = document.components.as_mut() {
            components.add_security_scheme("api_key", SecurityScheme::Http(scheme));
        }
        let needs_key = |path: &str| path.starts_with("/v1/") && !path.starts_with("/v1/downloads/");
        let guarded = document.paths.paths.iter_mut().filter(|(path, _)| needs_key(path));
        for operation in guarded.flat_map(|(_, item)| operations(item)) {
            operation.security = Some(vec![SecurityRequirement::new("api_key", [""; 0])]);
        }
    }
}

/// Liveness
///
/// 200 as long as the process can answer.
#[utoipa::path(
    get,
    path = "/healthz",
    operation_id = "getLiveness",
    tag = "Service",
    responses((status = 200, description = "Alive", body = Health), PublicProblems)
)]
#[allow(dead_code, reason = "documentation of a route of the platform")]
fn healthz() {}

/// Readiness
///
/// Whether requests should be sent here: every part of the service answers.
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "getReadiness",
    tag = "Service",
    responses(
        (status = 200, description = "Ready", body = Health),
        PublicProblems,
        (status = 503, description = "Not ready", body = Health),
    )
)]
#[allow(dead_code, reason = "documentation of a route of the platform")]
fn readyz() {}

/// State of the service.
#[derive(ToSchema)]
#[allow(dead_code, reason = "documentation only")]
struct Health {
    /// `alive`, `ready`, `degraded` or `not_ready`.
    status: String,
    /// Outcome by part of the service: `ok`, `degraded` or `failing`.
    #[schema(nullable = false)]
    checks: Option<BTreeMap<String, String>>,
}
