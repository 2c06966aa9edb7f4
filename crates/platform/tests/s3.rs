//! Files in a running S3 store, started by `scripts/s3-test.sh`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::ops::Range;

use assay_platform::objects::{ObjectError, Objects};
use bytes::Bytes;
use futures_util::StreamExt;

/// Minimum part size of S3, except for the last part.
const PART: usize = 5 * 1024 * 1024;

#[allow(clippy::disallowed_methods, reason = "the address of the server that the script starts")]
fn open(prefix: &str) -> Objects {
    let endpoint = std::env::var("ASSAY_TEST_S3_ENDPOINT").expect("run scripts/s3-test.sh");
    let options = [
        ("aws_endpoint", endpoint.as_str()),
        ("aws_allow_http", "true"),
        ("aws_region", "us-east-1"),
        ("aws_access_key_id", "id"),
        ("aws_secret_access_key", "secret"),
    ];
    let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Objects::open(&format!("s3://assay/{prefix}"), options).unwrap()
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index % 251) as u8).collect()
}

async fn read(objects: &Objects, key: &str, range: Range<u64>) -> Vec<u8> {
    let mut stream = objects.read(key, range).await.unwrap();
    let mut content = Vec::new();
    while let Some(chunk) = stream.next().await {
        content.extend_from_slice(&chunk.unwrap());
    }
    content
}

async fn write(objects: &Objects, key: &str, content: &[u8]) -> assay_platform::objects::WrittenObject {
    let mut writer = objects.create(key).await.unwrap();
    // Chunks that do not align with the part size.
    for piece in content.chunks(777_777) {
        writer.write(Bytes::copy_from_slice(piece)).await.unwrap();
    }
    writer.finish().await.unwrap()
}

#[tokio::test]
#[ignore = "needs an S3 server: scripts/s3-test.sh"]
async fn multipart_file_appears_only_when_complete() {
    let objects = open("several-parts");
    let content = content(2 * PART + 12_345);
    let mut writer = objects.create("exports/a.csv").await.unwrap();
    for piece in content.chunks(777_777) {
        writer.write(Bytes::copy_from_slice(piece)).await.unwrap();
    }
    assert!(matches!(objects.size("exports/a.csv").await, Err(ObjectError::NotFound(_))));
    assert!(matches!(objects.read("exports/a.csv", 0..1).await, Err(ObjectError::NotFound(_))));
    let written = writer.finish().await.unwrap();
    assert_eq!(written.bytes, content.len() as u64);
    assert_eq!(objects.size("exports/a.csv").await.unwrap(), written.bytes);
    assert!(read(&objects, "exports/a.csv", 0..written.bytes).await == content);
}

#[tokio::test]
#[ignore = "needs an S3 server: scripts/s3-test.sh"]
async fn byte_ranges_are_read_across_parts() {
    let objects = open("ranges");
    let content = content(PART + 100);
    write(&objects, "a.csv", &content).await;
    let length = content.len() as u64;
    // Across the border of two parts, the first and the last byte.
    let border = PART as u64;
    for range in [0..1, border - 7..border + 7, length - 1..length, 0..length] {
        let expected = &content[range.start as usize..range.end as usize];
        assert!(read(&objects, "a.csv", range.clone()).await == expected, "{range:?}");
    }
}

#[tokio::test]
#[ignore = "needs an S3 server: scripts/s3-test.sh"]
async fn aborted_upload_never_appears() {
    let objects = open("given-up");
    let mut writer = objects.create("a.csv").await.unwrap();
    writer.write(Bytes::from(content(PART + 1))).await.unwrap();
    writer.abort().await.unwrap();
    assert!(matches!(objects.size("a.csv").await, Err(ObjectError::NotFound(_))));
    // The key can be written afterwards, and a second file replaces the first.
    write(&objects, "a.csv", b"first").await;
    write(&objects, "a.csv", b"second!").await;
    assert_eq!(read(&objects, "a.csv", 0..7).await, b"second!");
}

#[tokio::test]
#[ignore = "needs an S3 server: scripts/s3-test.sh"]
async fn empty_file_is_stored() {
    let objects = open("empty");
    let written = write(&objects, "a.csv", b"").await;
    assert_eq!(written.bytes, 0);
    assert_eq!(objects.size("a.csv").await.unwrap(), 0);
}

#[tokio::test]
#[ignore = "needs an S3 server: scripts/s3-test.sh"]
async fn delete_is_idempotent() {
    let objects = open("deleted");
    write(&objects, "a.csv", b"x").await;
    objects.delete("a.csv").await.unwrap();
    assert!(matches!(objects.size("a.csv").await, Err(ObjectError::NotFound(_))));
    assert!(matches!(objects.read("a.csv", 0..1).await, Err(ObjectError::NotFound(_))));
    objects.delete("a.csv").await.unwrap();
}

/// The sweeper of exports lists and deletes this way. S3 lists 1,000 keys in a page.
#[tokio::test]
#[ignore = "needs an S3 server: scripts/s3-test.sh"]
async fn listing_has_every_file_below_its_prefix() {
    const FILES: usize = 1_005;
    let objects = open("listed");
    for file in 0..FILES {
        write(&objects, &format!("exports/organization/{file}.csv"), b"x").await;
    }
    write(&objects, "exported/a.csv", b"x").await;
    write(&open("listed-too"), "exports/a.csv", b"x").await;
    let mut listing = objects.list("exports");
    let mut keys = BTreeSet::new();
    loop {
        let page = listing.next(400).await.unwrap();
        let [first, ..] = &page[..] else { break };
        objects.delete_listed(first).await.unwrap();
        keys.extend(page.into_iter().map(|object| object.key));
    }
    let expected: BTreeSet<_> = (0..FILES).map(|file| format!("exports/organization/{file}.csv")).collect();
    assert_eq!(keys, expected);
    let first = objects.list("exports").next(1).await.unwrap();
    assert!(keys.contains(&first[0].key));
    let left = objects.list("exports").next(2 * FILES).await.unwrap().len();
    assert_eq!(left, FILES - FILES.div_ceil(400), "one file of each page was deleted");
    assert_eq!(objects.size("exported/a.csv").await.unwrap(), 1);
}

#[tokio::test]
#[ignore = "needs an S3 server: scripts/s3-test.sh"]
async fn prefixes_separate_installations() {
    let (one, other) = (open("one"), open("other"));
    write(&one, "a.csv", b"x").await;
    assert!(matches!(other.size("a.csv").await, Err(ObjectError::NotFound(_))));
}
