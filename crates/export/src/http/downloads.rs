//! `/v1/downloads/{id}`: the file, whole or in ranges (RFC 9110, section 14). The signed URL is the credential.

use std::collections::BTreeMap;
use std::ops::Range;

use actix_web::body::SizedStream;
use actix_web::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName,
    IF_NONE_MATCH, IF_RANGE, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::web::{Bytes, Data, Path};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use assay_contracts::internal::FILE_OWNER_HEADER;
use assay_contracts::problem::ProblemCode;
use assay_platform::objects::ObjectError;
use assay_platform::web::{WebError, query_pairs};
use futures_util::{StreamExt as _, stream};

use super::Services;
use crate::app::open_file::{FoundFile, OpenFileError, check_file, find_file, read_file};
use crate::domain::byte_range::{RequestedRange, if_none_match_matches, if_range_matches, parse_range};
use crate::domain::download_address::InvalidAddress;

/// The URL is a secret and the file contains customer data: neither may be cached.
pub(super) const CACHE_POLICY: &str = "private, no-store";

/// Digest of the whole file (RFC 9530, section 3), for clients that download ranges.
const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

/// `GET`: 200, 206, 304 or 416.
pub(super) async fn send(
    request: HttpRequest,
    services: Data<Services>,
    id: Path<String>,
) -> Result<HttpResponse, WebError> {
    let file = find(&request, &services, &id).await?;
    if is_not_modified(&request, &file) {
        return Ok(not_modified(&file));
    }
    let length = file.view.length();
    match requested_range(&request, &file) {
        RequestedRange::Unsatisfiable => Err(unsatisfiable(length)),
        RequestedRange::Full => body(&services, HttpResponse::Ok(), &file, 0..length).await,
        RequestedRange::Partial(range) => {
            let mut response = HttpResponse::PartialContent();
            let last = range.end - 1;
            response.insert_header((CONTENT_RANGE, format!("bytes {}-{last}/{length}", range.start)));
            body(&services, response, &file, range).await
        }
    }
}

/// `HEAD`: the headers of the whole file (a range has no meaning here: RFC 9110, section 14.2).
pub(super) async fn describe(
    request: HttpRequest,
    services: Data<Services>,
    id: Path<String>,
) -> Result<HttpResponse, WebError> {
    let file = find(&request, &services, &id).await?;
    if is_not_modified(&request, &file) {
        return Ok(not_modified(&file));
    }
    check_file(&services.objects, &file.view).await?;
    let mut response = HttpResponse::Ok();
    describe_file(&mut response, &file);
    let nothing = stream::empty::<Result<Bytes, ObjectError>>();
    Ok(response.body(SizedStream::new(file.view.length(), nothing)))
}

async fn find(request: &HttpRequest, services: &Services, id: &str) -> Result<FoundFile, WebError> {
    // A malformed query or a repeated parameter is not a signed URL.
    let query: BTreeMap<String, String> = query_pairs(request, &["expires", "key", "signature", "bom"])
        .map_err(|_| OpenFileError::Address(InvalidAddress))?;
    Ok(find_file(&services.store, &services.keys, id, &query).await?)
}

async fn body(
    services: &Services,
    mut response: HttpResponseBuilder,
    file: &FoundFile,
    range: Range<u64>,
) -> Result<HttpResponse, WebError> {
    let permit = services.downloads.acquire(file.owner).map_err(OpenFileError::Busy)?;
    let content = read_file(&services.objects, &file.view, &range).await?;
    // The permit lasts as long as the body: until its end, or that of the connection.
    let content = content.inspect(move |_| {
        let _held = &permit;
    });
    describe_file(&mut response, file);
    Ok(response.body(SizedStream::new(range.end - range.start, content)))
}

fn describe_file(response: &mut HttpResponseBuilder, file: &FoundFile) {
    response
        .insert_header((CONTENT_TYPE, "text/csv; charset=utf-8"))
        .insert_header((CONTENT_DISPOSITION, format!("attachment; filename=\"{}\"", file.name)))
        .insert_header((ACCEPT_RANGES, "bytes"))
        .insert_header((ETAG, file.view.entity_tag()))
        .insert_header((CACHE_CONTROL, CACHE_POLICY))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((FILE_OWNER_HEADER, file.owner.organization_id.to_string()));
    if let Some(digest) = file.view.repr_digest() {
        response.insert_header((REPR_DIGEST, digest));
    }
}

fn is_not_modified(request: &HttpRequest, file: &FoundFile) -> bool {
    let etag = file.view.entity_tag();
    header(request, &IF_NONE_MATCH).is_some_and(|known| if_none_match_matches(known, &etag))
}

fn not_modified(file: &FoundFile) -> HttpResponse {
    HttpResponse::NotModified()
        .insert_header((ETAG, file.view.entity_tag()))
        .insert_header((CACHE_CONTROL, CACHE_POLICY))
        .finish()
}

fn requested_range(request: &HttpRequest, file: &FoundFile) -> RequestedRange {
    if !if_range_matches(header(request, &IF_RANGE), &file.view.entity_tag()) {
        return RequestedRange::Full;
    }
    parse_range(header(request, &RANGE), file.view.length())
}

fn unsatisfiable(length: u64) -> WebError {
    WebError::new(ProblemCode::RangeNotSatisfiable, format!("the file has {length} bytes"))
        .with_header(CONTENT_RANGE, &format!("bytes */{length}"))
        .with_header(CACHE_CONTROL, CACHE_POLICY)
}

fn header<'r>(request: &'r HttpRequest, name: &HeaderName) -> Option<&'r str> {
    request.headers().get(name)?.to_str().ok()
}
