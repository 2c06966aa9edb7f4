//! `/docs`: the API reference, rendered from `/openapi.json` by an embedded Swagger UI. The page loads nothing from other
//! hosts.

use std::borrow::Cow;
use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, LOCATION, X_CONTENT_TYPE_OPTIONS};
use actix_web::web::Path;
use assay_contracts::problem::ProblemCode;
use assay_platform::web::WebError;
use bytes::Bytes;
use utoipa_swagger_ui::{Config, serve};

use super::keyless::in_pieces;

/// Only same-origin resources, and no embedding in frames. Swagger UI needs inline styles.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The files change with the executable.
const CACHING: &str = "no-cache";

/// The page uses relative addresses, which need the trailing slash.
pub(crate) async fn redirect() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header((LOCATION, "docs/")).finish()
}

pub(crate) async fn file(name: Path<String>) -> Result<HttpResponse, WebError> {
    // Relative, so that it also works behind a prefix.
    let config = Config::from("../openapi.json").try_it_out_enabled(false).display_request_duration(true);
    let file = serve(&name, Arc::new(config)).map_err(|error| WebError::internal(&error))?;
    let file =
        file.ok_or_else(|| WebError::new(ProblemCode::RouteNotFound, "the reference has no such file"))?;
    let bytes = match file.bytes {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    };
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((CACHE_CONTROL, CACHING))
        .content_type(file.content_type)
        .body(in_pieces(bytes)))
}
