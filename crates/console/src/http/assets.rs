//! Static files, embedded in the executable. The name of each contains its hash, so that browsers may cache it for ever.

use std::io::Write;

use actix_web::http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use super::Console;
use super::error::PageError;

struct File {
    name: String,
    content_type: &'static str,
    plain: Bytes,
    gzip: Option<Bytes>,
}

/// The files, and their addresses for templates.
pub(crate) struct Assets {
    files: Vec<File>,
    pub(crate) addresses: AssetAddresses,
}

#[derive(Debug, Clone)]
pub(crate) struct AssetAddresses {
    pub(crate) style: String,
    pub(crate) script: String,
    pub(crate) icon: String,
    pub(crate) htmx: String,
    pub(crate) chart_style: String,
    pub(crate) chart_script: String,
}

/// Content types.
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

impl Assets {
    /// Names and compresses the files.
    pub(crate) fn load() -> Self {
        let mut files = Vec::new();
        let mut add = |name: &str, content_type, bytes: &'static [u8]| {
            let hash = short_hash(bytes);
            let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
            let name = format!("{stem}.{hash}.{extension}");
            let address = format!("/console/assets/{name}");
            files.push(File {
                name,
                content_type,
                plain: Bytes::from_static(bytes),
                gzip: gzip(bytes, Compression::best()),
            });
            address
        };
        let addresses = AssetAddresses {
            style: add("console.css", CSS, include_bytes!("../../assets/console.css")),
            script: add("console.js", JAVASCRIPT, include_bytes!("../../assets/console.js")),
            icon: add("icon.svg", "image/svg+xml", include_bytes!("../../assets/icon.svg")),
            htmx: add("htmx.js", JAVASCRIPT, include_bytes!("../../assets/vendor/htmx-2.0.11.min.js")),
            chart_style: add("uplot.css", CSS, include_bytes!("../../assets/vendor/uplot-1.6.32.min.css")),
            chart_script: add(
                "uplot.js",
                JAVASCRIPT,
                include_bytes!("../../assets/vendor/uplot-1.6.32.iife.min.js"),
            ),
        };
        Self { files, addresses }
    }
}

/// Sends a file. Files of another release have other names: its pages that are still open find them in the browser's
/// cache, or lack them until they are reloaded.
pub(crate) async fn send_file(
    request: HttpRequest,
    console: Data<Console>,
    name: Path<String>,
) -> Result<HttpResponse, PageError> {
    let file = console.assets.files.iter().find(|file| file.name == *name).ok_or(PageError::NotFound)?;
    let mut response = HttpResponse::Ok();
    response
        .insert_header((CONTENT_TYPE, file.content_type))
        .insert_header((CACHE_CONTROL, "public, max-age=31536000, immutable"))
        .insert_header((VARY, "accept-encoding"));
    if let Some(gzip) = file.gzip.clone().filter(|_| accepts_gzip(&request)) {
        return Ok(response.insert_header((CONTENT_ENCODING, "gzip")).body(gzip));
    }
    Ok(response.body(file.plain.clone()))
}

/// Whether the client accepts gzip: it names it, and not with a quality of zero.
pub(crate) fn accepts_gzip(request: &HttpRequest) -> bool {
    let headers = request.headers().get_all(ACCEPT_ENCODING).filter_map(|value| value.to_str().ok());
    headers.flat_map(|header| header.split(',')).any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        let is_refused = quality.trim().strip_prefix("q=").and_then(|q| q.parse::<f32>().ok()) == Some(0.0);
        name.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

/// Compresses. Writing to memory does not fail; if it did, the bytes would be sent as they are.
pub(crate) fn gzip(bytes: &[u8], level: Compression) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 3), level);
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.map(Bytes::from).ok()
}

fn short_hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stay_within_their_size_limits() {
        let assets = Assets::load();
        let size = |end: &str| {
            assets
                .files
                .iter()
                .find(|file| file.name.starts_with("console.") && file.name.ends_with(end))
                .map(|file| file.plain.len())
                .unwrap()
        };
        assert!(size(".css") <= 20_000, "{}", size(".css"));
        let script = include_str!("../../assets/console.js");
        assert!(script.lines().count() <= 300, "{}", script.lines().count());
        let compressed: usize =
            assets.files.iter().filter_map(|file| file.gzip.as_ref()).map(Bytes::len).sum();
        assert!(compressed <= 60_000, "all files of a first visit: {compressed}");
    }

    #[test]
    fn vendored_files_are_those_named_in_the_notice() {
        let notice = include_str!("../../../../NOTICE");
        let files: [&[u8]; 3] = [
            include_bytes!("../../assets/vendor/htmx-2.0.11.min.js"),
            include_bytes!("../../assets/vendor/uplot-1.6.32.iife.min.js"),
            include_bytes!("../../assets/vendor/uplot-1.6.32.min.css"),
        ];
        for bytes in files {
            let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(notice.contains(&hash), "{hash}");
        }
    }
}
