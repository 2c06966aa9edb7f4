//! `/v1/downloads/{id}`: the signed file itself.

use anyhow::{Context as _, Result};
use assay_contracts::ids::ExportId;
use assay_export::domain::download_address::{LIFETIME_MILLIS, sign};
use assay_platform::runtime::{new_id, now};
use assay_testkit::on_both_databases;
use reqwest::Response;

use crate::stage::{Stage, header, problem};

const CONTENT: &[u8] = b"ticket_id,subject\r\n1,\"\xC3\xBCber\"\r\n";
/// As `openssl dgst -sha256 -binary | base64` tells it.
const DIGEST: &str = "sha-256=:xWNkNiMZ+YCWYK3Yylb2mdrbMFTVHpohTW1LW+ONEls=:";
const MARK: &[u8] = b"\xEF\xBB\xBF";

async fn get(stage: &Stage, address: &str, headers: &[(&str, &str)]) -> Result<Response> {
    let request =
        headers.iter().fold(stage.http.get(address), |request, (name, value)| request.header(*name, *value));
    Ok(request.send().await?)
}

fn id_of(address: &str) -> Result<ExportId> {
    let path = address.split_once('?').context("no query")?.0;
    Ok(path.rsplit_once('/').context("no path")?.1.parse()?)
}

async fn the_file_comes_with_all_that_a_browser_needs(stage: Stage) -> Result<()> {
    let address = stage.downloadable(new_id(), CONTENT).await?;
    let name = format!("attachment; filename=\"assay-axis-{}.csv\"", id_of(&address)?);
    let got = get(&stage, &address, &[]).await?;
    let described = stage.http.head(&address).send().await?;
    for response in [&got, &described] {
        assert_eq!(response.status(), 200);
        let expected = [
            ("content-type", "text/csv; charset=utf-8"),
            ("content-disposition", &name),
            ("content-length", &CONTENT.len().to_string()),
            ("accept-ranges", "bytes"),
            ("cache-control", "private, no-store"),
            ("x-content-type-options", "nosniff"),
        ];
        for (name, value) in expected {
            assert_eq!(header(response, name).as_deref(), Some(value), "{name}");
        }
        let etag = header(response, "etag").unwrap_or_default();
        assert!(etag.len() == 66 && etag.starts_with('"') && etag.ends_with('"'), "{etag}");
        assert_eq!(header(response, "repr-digest"), Some(DIGEST.to_owned()), "Repr-Digest");
    }
    assert_eq!(got.bytes().await?, CONTENT);
    assert_eq!(described.bytes().await?.len(), 0);
    Ok(())
}

async fn a_byte_order_mark_is_part_of_length_tag_and_ranges(stage: Stage) -> Result<()> {
    let plain = stage.downloadable(new_id(), CONTENT).await?;
    let marked = format!("{plain}&bom=1");
    let whole = [MARK, CONTENT].concat();
    let response = get(&stage, &marked, &[]).await?;
    assert_eq!(header(&response, "content-length"), Some(whole.len().to_string()));
    assert_ne!(header(&response, "etag"), header(&get(&stage, &plain, &[]).await?, "etag"));
    assert_eq!(response.bytes().await?, whole);
    for (first, last) in [(0, 1), (1, 4), (2, 2), (3, 9), (0, whole.len() - 1)] {
        let range = format!("bytes={first}-{last}");
        let response = get(&stage, &marked, &[("range", &range)]).await?;
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

async fn one_byte_range_is_answered_alone(stage: Stage) -> Result<()> {
    let address = stage.downloadable(new_id(), CONTENT).await?;
    let length = CONTENT.len();
    let cases = [
        ("bytes=0-3".to_owned(), 0..4),
        ("bytes=5-".to_owned(), 5..length),
        ("bytes=-4".to_owned(), length - 4..length),
        (format!("bytes=7-{}", length * 2), 7..length),
    ];
    for (range, expected) in cases {
        let response = get(&stage, &address, &[("range", &range)]).await?;
        assert_eq!(response.status(), 206, "{range}");
        let content_range = format!("bytes {}-{}/{length}", expected.start, expected.end - 1);
        assert_eq!(header(&response, "content-range"), Some(content_range));
        assert_eq!(header(&response, "content-length"), Some(expected.len().to_string()));
        assert!(header(&response, "etag").is_some());
        assert_eq!(header(&response, "repr-digest"), Some(DIGEST.to_owned()), "that of the whole file");
        assert_eq!(response.bytes().await?, CONTENT[expected]);
    }
    for range in ["bytes=0-1,4-5", "lines=0-1", "bytes=9-1", "bytes=x"] {
        let response = get(&stage, &address, &[("range", range)]).await?;
        assert_eq!((response.status().as_u16(), header(&response, "content-range")), (200, None), "{range}");
        assert_eq!(response.bytes().await?, CONTENT);
    }
    for range in [format!("bytes={length}-"), "bytes=-0".to_owned()] {
        let response = get(&stage, &address, &[("range", &range)]).await?;
        assert_eq!(header(&response, "content-range"), Some(format!("bytes */{length}")));
        problem(response, 416, "range-not-satisfiable").await?;
    }
    Ok(())
}

async fn conditions_go_by_the_entity_tag(stage: Stage) -> Result<()> {
    let address = stage.downloadable(new_id(), CONTENT).await?;
    let etag = header(&get(&stage, &address, &[]).await?, "etag").context("no tag")?;
    for known in [etag.as_str(), "*", &format!("W/{etag}"), &format!("\"other\", {etag}")] {
        let response = get(&stage, &address, &[("if-none-match", known)]).await?;
        assert_eq!((response.status().as_u16(), header(&response, "etag")), (304, Some(etag.clone())));
        assert_eq!(stage.http.head(&address).header("if-none-match", known).send().await?.status(), 304);
    }
    assert_eq!(get(&stage, &address, &[("if-none-match", "\"other\"")]).await?.status(), 200);
    let cases = [(etag.clone(), 206), (format!("W/{etag}"), 200), ("\"other\"".to_owned(), 200)];
    for (tag, status) in cases {
        let response = get(&stage, &address, &[("range", "bytes=0-1"), ("if-range", &tag)]).await?;
        assert_eq!(response.status().as_u16(), status, "{tag}");
    }
    Ok(())
}

async fn an_address_that_was_altered_or_expired_is_refused(stage: Stage) -> Result<()> {
    let address = stage.downloadable(new_id(), CONTENT).await?;
    let id = id_of(&address)?;
    let (path, query) = address.split_once('?').context("no query")?;
    let other: ExportId = new_id();
    let expired = sign(&stage.keys, &stage.address, id, now().plus_millis(-LIFETIME_MILLIS));
    let elsewhere = assay_platform::auth::SigningKeys::parse(
        &"k1:another secret of thirty-two characters".to_owned().into(),
    )?;
    let cases = [
        path.to_owned(),
        expired,
        sign(&elsewhere, &stage.address, id, now()),
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
        let response = get(&stage, &altered, &[]).await?;
        assert_eq!(header(&response, "cache-control").as_deref(), Some("private, no-store"));
        problem(response, 403, "invalid-signature").await?;
        assert_eq!(stage.http.head(&altered).send().await?.status(), 403, "{altered}");
    }
    assert_eq!(get(&stage, &address, &[]).await?.status(), 200);
    let posted = stage.http.post(&address).send().await?;
    assert_eq!(header(&posted, "allow").as_deref(), Some("GET, HEAD"));
    problem(posted, 405, "method-not-allowed").await?;
    Ok(())
}

async fn a_file_that_is_no_longer_kept_is_gone(stage: Stage) -> Result<()> {
    let organization = new_id();
    let kept_until_now = stage.create(organization).await?.id;
    stage.complete(CONTENT, now()).await?;
    let expired = sign(&stage.keys, &stage.address, kept_until_now, now());
    let removed = stage.downloadable(organization, CONTENT).await?;
    let key = format!("exports/{organization}/{}/1.csv", id_of(&removed)?);
    stage.objects.delete(&key).await?;
    let unknown = sign(&stage.keys, &stage.address, new_id(), now());
    for address in [expired, removed, unknown] {
        problem(get(&stage, &address, &[]).await?, 404, "export-file-gone").await?;
        assert_eq!(stage.http.head(&address).send().await?.status(), 404);
    }
    Ok(())
}

async fn a_large_file_arrives_whole_and_in_parts(stage: Stage) -> Result<()> {
    let content: Vec<u8> = (0..9_000_000_u32).map(|index| (index % 251) as u8).collect();
    let address = stage.downloadable(new_id(), &content).await?;
    assert!(get(&stage, &address, &[]).await?.bytes().await? == content);
    let response = get(&stage, &address, &[("range", "bytes=8000000-8999999")]).await?;
    assert!(response.bytes().await? == content[8_000_000..9_000_000]);
    Ok(())
}

on_both_databases! { Stage {
    the_file_comes_with_all_that_a_browser_needs,
    a_byte_order_mark_is_part_of_length_tag_and_ranges,
    one_byte_range_is_answered_alone,
    conditions_go_by_the_entity_tag,
    an_address_that_was_altered_or_expired_is_refused,
    a_file_that_is_no_longer_kept_is_gone,
    a_large_file_arrives_whole_and_in_parts,
} }
