//! Malformed bodies, other media types, too large or too slow bodies: refused before anything is stored.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use reqwest::Method;

use crate::harness::{Api, Cases, RawConnection, Stack, conversation, edited, set};

/// The largest body (4 MiB).
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// Malformed JSON, media types, size and time.
pub async fn run(stack: &Stack) -> Result<()> {
    let api = stack.api()?;
    let mut cases = Cases::default();
    for (name, body) in malformed() {
        for path in ["/v1/assess", "/v1/agents", "/v1/evaluations/exports"] {
            let reply = api.post_bytes(path, body.clone()).await;
            // Bodies of other requests than imports are limited to 64 KiB.
            let is_too_large = path != "/v1/assess" && body.len() > 65_536;
            let (status, code) =
                if is_too_large { (413, "payload-too-large") } else { (400, "malformed-json") };
            cases.check(
                format!("{name} to {path}"),
                reply.and_then(|reply| reply.problem(status, code).map(drop)),
            );
        }
    }
    cases.check(
        "after malformed bodies the identity is free",
        api.import(&conversation("malformed")).await.map(drop),
    );
    for (content_type, accepted) in CONTENT_TYPES {
        cases.check(format!("content type {content_type:?}"), media_type(&api, content_type, accepted).await);
    }
    cases.check("a body of exactly 4 MiB", largest_body(&api).await);
    cases.check("a declared length above 4 MiB", declared_too_large(stack).await);
    let chunked = RawConnection::begin_import(stack, "Transfer-Encoding: chunked").await?;
    cases.check("64 MB in chunks", endless_chunks(chunked, 413, "payload-too-large").await);
    let headers = with_invalid_key("Transfer-Encoding: chunked");
    let chunked = RawConnection::begin_with_headers(stack, &headers).await?;
    cases.check("64 MB in chunks with an invalid key", endless_chunks(chunked, 401, "unauthorized").await);
    cases.check("an open body without a valid key", open_body(stack).await);
    cases.check("a body that does not arrive", slow_body(stack).await);
    cases.check("a body that ends early", cut_body(stack).await);
    cases.check("the gateway still serves", api.import(&conversation("afterwards")).await.map(drop));
    cases.finish()
}

fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let with = |text: &str| {
        let body = edited(conversation("malformed"), &[set("/subject", "HERE")]).to_string();
        body.replace("HERE", text).into_bytes()
    };
    let good = conversation("malformed").to_string();
    let (before, after) = good.split_at(good.len() / 2);
    let mut invalid_utf8 = with("HERE");
    let place = invalid_utf8.windows(4).position(|window| window == b"HERE").unwrap_or_default();
    invalid_utf8[place] = 0xFF;
    vec![
        ("nothing", Vec::new()),
        ("white space", b" \r\n\t ".to_vec()),
        ("the first half", before.into()),
        ("the second half", after.into()),
        ("two texts", format!("{good}{good}").into()),
        ("a comma at the end", good.replace("}]", "},]").into()),
        ("single quotes", good.replace('"', "'").into()),
        ("not a number", good.replace("1763600000000", "NaN").into()),
        ("a leading zero", good.replace("1763600000000", "01763600000000").into()),
        ("invalid UTF-8", invalid_utf8),
        ("UTF-16", good.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("a byte-order mark", format!("\u{FEFF}{good}").into()),
        ("a lone high surrogate", with("\\ud83d")),
        ("a lone low surrogate", with("\\ude00")),
        ("a high surrogate before a letter", with("\\ud83dx")),
        ("a control character", with("\u{1}")),
        ("a raw NUL", with("\0")),
        ("deep arrays", "[".repeat(100_000).into()),
        ("deep arrays of 60 kB", "[".repeat(60_000).into()),
        ("deep closed arrays", format!("{}{}", "[".repeat(5_000), "]".repeat(5_000)).into()),
        ("deep objects", "{\"a\":".repeat(100_000).into()),
    ]
}

/// Content types, and whether a body with them is accepted.
const CONTENT_TYPES: [(Option<&str>, bool); 14] = [
    (Some("application/json"), true),
    (Some("application/json; charset=utf-8"), true),
    (Some("APPLICATION/JSON"), true),
    (Some("application/vnd.example.ticket+json"), true),
    (None, true),
    (Some("text/plain"), false),
    (Some("text/json"), false),
    (Some("application/xml"), false),
    (Some("application/x-www-form-urlencoded"), false),
    (Some("multipart/form-data; boundary=x"), false),
    (Some("application/jsonx"), false),
    (Some("application/octet-stream"), false),
    (Some("json"), false),
    (Some("+json"), false),
];

async fn media_type(api: &Api, content_type: Option<&str>, accepted: bool) -> Result<()> {
    let good = conversation(&format!("media type {content_type:?}"));
    let mut request = api.request(Method::POST, "/v1/assess").body(good.to_string());
    if let Some(content_type) = content_type {
        request = request.header("content-type", content_type);
    }
    let reply = api.reply(request).await?;
    if accepted {
        return reply.expect(202).map(drop);
    }
    reply.problem(415, "unsupported-media-type")?;
    api.import(&good).await.context("the identity is not free after the refusal").map(drop)
}

/// White space counts: the limit is one of bytes, not of content.
async fn largest_body(api: &Api) -> Result<()> {
    let body = conversation("largest").to_string();
    let padded = |bytes: usize| format!("{body}{}", " ".repeat(bytes - body.len()));
    api.post_bytes("/v1/assess", padded(MAX_BODY_BYTES + 1)).await?.problem(413, "payload-too-large")?;
    api.post_bytes("/v1/assess", padded(MAX_BODY_BYTES)).await?.expect(202).map(drop)
}

/// Refused after the head: the gateway does not wait for the body.
async fn declared_too_large(stack: &Stack) -> Result<()> {
    let length = format!("Content-Length: {}", MAX_BODY_BYTES + 1);
    let mut connection = RawConnection::begin_import(stack, &length).await?;
    connection.reply().await?.problem(413, "payload-too-large").map(drop)
}

/// Refused as soon as the limit is passed: the rest is neither read nor buffered.
async fn endless_chunks(mut connection: RawConnection, status: u16, code: &str) -> Result<()> {
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    // A gateway that reads on takes all 64,000,000 bytes. One that stops takes its limit and what fits into the buffers of the
    // system, together far less than 48,000,000.
    let sent = connection.send_until_answered(chunk.as_bytes(), 64_000_000).await?;
    ensure!(sent < 48_000_000, "{sent} bytes were taken");
    connection.reply().await?.problem(status, code)?;
    ensure!(connection.is_closed_within(Duration::from_secs(10)).await, "the connection stays open");
    Ok(())
}

/// After a 401 the connection is closed, although its body is incomplete; the key is checked before the length.
async fn open_body(stack: &Stack) -> Result<()> {
    for length in ["Transfer-Encoding: chunked", "Content-Length: 1000", "Content-Length: 64000000"] {
        for headers in [length.to_owned(), with_invalid_key(length)] {
            let mut connection = RawConnection::begin_with_headers(stack, &headers).await?;
            connection.reply().await?.problem(401, "unauthorized")?;
            let is_closed = connection.is_closed_within(Duration::from_secs(10)).await;
            ensure!(is_closed, "{headers}: the connection stays open");
        }
    }
    Ok(())
}

fn with_invalid_key(headers: &str) -> String {
    format!("Authorization: Bearer none\r\n{headers}")
}

/// The rest of the body never comes: refused after three seconds, the deadline of bodies in the harness.
async fn slow_body(stack: &Stack) -> Result<()> {
    let mut connection = RawConnection::begin_import(stack, "Content-Length: 1000").await?;
    connection.send(b"{\"ticket_id\":").await?;
    connection.reply().await?.problem(408, "request-timeout").map(drop)
}

/// An incomplete body is not imported: its identity is still free.
async fn cut_body(stack: &Stack) -> Result<()> {
    let body = conversation("cut").to_string();
    let length = format!("Content-Length: {}", body.len());
    let mut connection = RawConnection::begin_import(stack, &length).await?;
    connection.send(&body.as_bytes()[..body.len() - 1]).await?;
    drop(connection);
    stack.api()?.import(&conversation("cut")).await.map(drop)
}
