//! `/v1/downloads/{id}`: signed downloads.

use anyhow::{Context as _, Result};
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::internal::FILE_OWNER_HEADER;
use assay_export::domain::download_address::{LIFETIME_MILLIS, sign};
use assay_platform::runtime::{new_id, now};
use assay_testkit::on_both_databases;
use reqwest::Response;

use crate::test_app::{TestApp, header, problem};

const CONTENT: &[u8] = b"ticket_id,subject\r\n1,\"\xC3\xBCber\"\r\n";
/// From `openssl dgst -sha256 -binary | base64`.
const DIGEST: &str = "sha-256=:xWNkNiMZ+YCWYK3Yylb2mdrbMFTVHpohTW1LW+ONEls=:";
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

async fn get(app: &TestApp, address: &str, headers: &[(&str, &str)]) -> Result<Response> {
    let request =
        headers.iter().fold(app.http.get(address), |request, (name, value)| request.header(*name, *value));
    Ok(request.send().await?)
}

fn id_of(address: &str) -> Result<ExportId> {
    let path = address.split_once('?').context("no query")?.0;
    Ok(path.rsplit_once('/').context("no path")?.1.parse()?)
}

async fn download_has_the_headers_for_browsers(app: TestApp) -> Result<()> {
    let organization: OrganizationId = new_id();
    let address = app.create_download(organization, CONTENT).await?;
    let name = format!("attachment; filename=\"assay-axis-{}.csv\"", id_of(&address)?);
    let got = get(&app, &address, &[]).await?;
    let described = app.http.head(&address).send().await?;
    for response in [&got, &described] {
        assert_eq!(response.status(), 200);
        let expected = [
            ("content-type", "text/csv; charset=utf-8"),
            ("content-disposition", &name),
            ("content-length", &CONTENT.len().to_string()),
            ("accept-ranges", "bytes"),
            ("cache-control", "private, no-store"),
            ("x-content-type-options", "nosniff"),
            // For the gateway, which does not pass it on.
            (FILE_OWNER_HEADER, &organization.to_string()),
        ];
        for (name, value) in expected {
            assert_eq!(header(response, name).as_deref(), Some(value), "{name}");
        }
        let etag = header(response, "etag").unwrap_or_default();
        // A SHA-256 digest in hexadecimal, in quotes.
        assert!(etag.len() == 66 && etag.starts_with('"') && etag.ends_with('"'), "{etag}");
        assert_eq!(header(response, "repr-digest"), Some(DIGEST.to_owned()), "Repr-Digest");
    }
    assert_eq!(got.bytes().await?, CONTENT);
    assert_eq!(described.bytes().await?.len(), 0);
    Ok(())
}

async fn byte_order_mark_counts_in_length_etag_and_ranges(app: TestApp) -> Result<()> {
    let plain = app.create_download(new_id(), CONTENT).await?;
    let marked = format!("{plain}&bom=1");
    let whole = [BYTE_ORDER_MARK, CONTENT].concat();
    let response = get(&app, &marked, &[]).await?;
    assert_eq!(header(&response, "content-length"), Some(whole.len().to_string()));
    assert_eq!(header(&response, "repr-digest"), None, "a digest of other bytes");
    assert_ne!(header(&response, "etag"), header(&get(&app, &plain, &[]).await?, "etag"));
    assert_eq!(response.bytes().await?, whole);
    for (first, last) in [(0, 1), (1, 4), (2, 2), (3, 9), (0, whole.len() - 1)] {
        let range = format!("bytes={first}-{last}");
        let response = get(&app, &marked, &[("range", &range)]).await?;
        assert_eq!(response.status(), 206);
        assert_eq!(
            header(&response, "repr-digest"),
            None,
            "that of the file without the mark would be wrong"
        );
        let content_range = format!("bytes {first}-{last}/{}", whole.len());
        assert_eq!(header(&response, "content-range"), Some(content_range));
        assert_eq!(response.bytes().await?, whole[first..=last], "{range}");
    }
    Ok(())
}

async fn single_byte_range_is_a_partial_response(app: TestApp) -> Result<()> {
    let address = app.create_download(new_id(), CONTENT).await?;
    let length = CONTENT.len();
    let cases = [
        ("bytes=0-3".to_owned(), 0..4),
        ("bytes=5-".to_owned(), 5..length),
        ("bytes=-4".to_owned(), length - 4..length),
        (format!("bytes=7-{}", length * 2), 7..length),
    ];
    for (range, expected) in cases {
        let response = get(&app, &address, &[("range", &range)]).await?;
        assert_eq!(response.status(), 206, "{range}");
        let content_range = format!("bytes {}-{}/{length}", expected.start, expected.end - 1);
        assert_eq!(header(&response, "content-range"), Some(content_range));
        assert_eq!(header(&response, "content-length"), Some(expected.len().to_string()));
        assert!(header(&response, "etag").is_some());
        assert_eq!(header(&response, "repr-digest"), Some(DIGEST.to_owned()), "that of the whole file");
        assert_eq!(response.bytes().await?, CONTENT[expected]);
    }
    for range in ["bytes=0-1,4-5", "lines=0-1", "bytes=9-1", "bytes=x"] {
        let response = get(&app, &address, &[("range", range)]).await?;
        assert_eq!((response.status().as_u16(), header(&response, "content-range")), (200, None), "{range}");
        assert_eq!(response.bytes().await?, CONTENT);
    }
    for range in [format!("bytes={length}-"), "bytes=-0".to_owned()] {
        let response = get(&app, &address, &[("range", &range)]).await?;
        assert_eq!(header(&response, "content-range"), Some(format!("bytes */{length}")));
        problem(response, 416, "range-not-satisfiable").await?;
    }
    Ok(())
}

async fn conditional_requests_use_the_entity_tag(app: TestApp) -> Result<()> {
    let address = app.create_download(new_id(), CONTENT).await?;
    let etag = header(&get(&app, &address, &[]).await?, "etag").context("no tag")?;
    for candidate in [etag.as_str(), "*", &format!("W/{etag}"), &format!("\"other\", {etag}")] {
        let response = get(&app, &address, &[("if-none-match", candidate)]).await?;
        assert_eq!((response.status().as_u16(), header(&response, "etag")), (304, Some(etag.clone())));
        assert_eq!(app.http.head(&address).header("if-none-match", candidate).send().await?.status(), 304);
    }
    assert_eq!(get(&app, &address, &[("if-none-match", "\"other\"")]).await?.status(), 200);
    let cases = [(etag.clone(), 206), (format!("W/{etag}"), 200), ("\"other\"".to_owned(), 200)];
    for (tag, status) in cases {
        let response = get(&app, &address, &[("range", "bytes=0-1"), ("if-range", &tag)]).await?;
        assert_eq!(response.status().as_u16(), status, "{tag}");
    }
    Ok(())
}

async fn altered_or_expired_url_is_refused(app: TestApp) -> Result<()> {
    let address = app.create_download(new_id(), CONTENT).await?;
    let id = id_of(&address)?;
    let (path, query) = address.split_once('?').context("no query")?;
    let other: ExportId = new_id();
    let expired = sign(&app.keys, &app.address, id, now().plus_millis(-LIFETIME_MILLIS));
    let other_keys = assay_platform::auth::KeyRing::parse(
        &"k1:another secret of thirty-two characters".to_owned().into(),
    )?;
    let cases = [
        path.to_owned(),
        expired,
        sign(&other_keys, &app.address, id, now()),
        address.replace(&id.to_string(), &other.to_string()),
        address.replace(&id.to_string(), "x"),
        address.replace("key=k1", "key=k2"),
        address.replace("expires=", "expires=9"),
        address.replace("expires=", "expires=%00"),
        address.replace("signature=", "signature=A"),
        format!("{path}?{}", query.replace("signature=", "sign=")),
        format!("{address}&expires=99999999999999"),
    ];
    for altered in cases {
        let response = get(&app, &altered, &[]).await?;
        assert_eq!(header(&response, "cache-control").as_deref(), Some("private, no-store"));
        problem(response, 403, "invalid-signature").await?;
        assert_eq!(app.http.head(&altered).send().await?.status(), 403, "{altered}");
    }
    assert_eq!(get(&app, &address, &[]).await?.status(), 200);
    Ok(())
}

async fn expired_file_is_gone(app: TestApp) -> Result<()> {
    let organization = new_id();
    let kept_until_now = app.create(organization).await?.id;
    app.complete(CONTENT, now()).await?;
    let expired = sign(&app.keys, &app.address, kept_until_now, now());
    let removed = app.create_download(organization, CONTENT).await?;
    let key = format!("exports/{organization}/{}/1.csv", id_of(&removed)?);
    app.objects.delete(&key).await?;
    let unknown = sign(&app.keys, &app.address, new_id(), now());
    for address in [expired, removed, unknown] {
        problem(get(&app, &address, &[]).await?, 404, "export-file-gone").await?;
        assert_eq!(app.http.head(&address).send().await?.status(), 404);
    }
    Ok(())
}

async fn large_file_is_served_whole_and_in_ranges(app: TestApp) -> Result<()> {
    let content: Vec<u8> = (0..9_000_000_u32).map(|index| (index % 251) as u8).collect();
    let address = app.create_download(new_id(), &content).await?;
    assert!(get(&app, &address, &[]).await?.bytes().await? == content);
    let response = get(&app, &address, &[("range", "bytes=8000000-8999999")]).await?;
    assert!(response.bytes().await? == content[8_000_000..9_000_000]);
    Ok(())
}

on_both_databases! { TestApp {
    download_has_the_headers_for_browsers,
    byte_order_mark_counts_in_length_etag_and_ranges,
    single_byte_range_is_a_partial_response,
    conditional_requests_use_the_entity_tag,
    altered_or_expired_url_is_refused,
    expired_file_is_gone,
    large_file_is_served_whole_and_in_ranges,
} }
