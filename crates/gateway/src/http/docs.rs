//! `/docs`: the API reference, rendered from `/openapi.json` by an embedded Swagger UI. The page loads nothing from other
//! hosts.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use actix_web::HttpResponse;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, LOCATION, X_CONTENT_TYPE_OPTIONS};
use actix_web::web::Path;
use assay_contracts::problem::ProblemCode;
use assay_platform::web::{WebError, chunked_body};
use bytes::Bytes;
use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;

use super::archive;

/// Only same-origin resources, and no embedding in frames. Swagger UI needs inline styles.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Browsers fetch the files each time: they change with the executable.
const CACHING: &str = "no-cache";

/// The files of the page and their media types.
const FILES: [(&str, &str); 7] = [
    ("index.html", "text/html; charset=utf-8"),
    ("index.css", "text/css"),
    ("swagger-ui.css", "text/css"),
    ("swagger-ui-bundle.js", "text/javascript"),
    ("swagger-ui-standalone-preset.js", "text/javascript"),
    ("favicon-16x16.png", "image/png"),
    ("favicon-32x32.png", "image/png"),
];

/// Replaces Swagger UI's own file, which shows its sample API. The address is relative, so that it also works behind a prefix.
const INITIALIZER: (&str, &str) = ("swagger-initializer.js", "text/javascript");
const INITIALIZER_CODE: &[u8] = br##"window.onload = () => {
  window.ui = SwaggerUIBundle({
    url: "../openapi.json",
    dom_id: "#swagger-ui",
    deepLinking: true,
    displayRequestDuration: true,
    tryItOutEnabled: false,
    presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
    plugins: [SwaggerUIBundle.plugins.DownloadUrl],
  });
};
"##;

struct File {
    media_type: &'static str,
    content: Bytes,
}

/// Unpacked once, when the reference is first read.
static UNPACKED: LazyLock<Result<BTreeMap<&str, File>, archive::Unreadable>> = LazyLock::new(unpack);

fn unpack() -> Result<BTreeMap<&'static str, File>, archive::Unreadable> {
    let mut files = archive::read(SWAGGER_UI_VENDORED, "dist", &FILES.map(|(name, _)| name))?;
    files.insert(INITIALIZER.0, INITIALIZER_CODE.to_vec());
    let media_types = FILES.into_iter().chain([INITIALIZER]);
    Ok(media_types
        .filter_map(|(name, media_type)| {
            Some((name, File { media_type, content: files.remove(name)?.into() }))
        })
        .collect())
}

/// The page uses relative addresses, which need the trailing slash.
pub(crate) async fn redirect() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header((LOCATION, "docs/")).finish()
}

pub(crate) async fn file(name: Path<String>) -> Result<HttpResponse, WebError> {
    let name = if name.is_empty() { "index.html" } else { name.as_str() };
    let files = UNPACKED.as_ref().map_err(|error| WebError::internal(&error))?;
    let file = files
        .get(name)
        .ok_or_else(|| WebError::new(ProblemCode::RouteNotFound, "the reference has no such file"))?;
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((CACHE_CONTROL, CACHING))
        .content_type(file.media_type)
        .body(chunked_body(file.content.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_all_files_that_it_refers_to() {
        let files = UNPACKED.as_ref().unwrap();
        assert_eq!(files.len(), FILES.len() + 1);
        let page = str::from_utf8(&files["index.html"].content).unwrap();
        let referred: Vec<&str> =
            page.split("\"./").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(referred.len() >= 5, "{referred:?}");
        for name in referred {
            assert!(files.contains_key(name), "{name}");
        }
        assert!(files["swagger-ui-bundle.js"].content.len() > 1_000_000);
        assert!(files["favicon-16x16.png"].content.starts_with(b"\x89PNG"));
    }
}
