//! Lists, summaries and neighbours: the coverage of a summary, and answers that are not sent again while they are unchanged. How the
//! gateway counts pending imports: `crates/gateway/tests/summary.rs`.

use anyhow::{Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Api, Cases, Reply, Stack, conversation};

/// Imports two conversations without AI agents, and asks for each list and summary before and after the second.
pub async fn run(stack: &Stack) -> Result<()> {
    let api = stack.api()?;
    let first = import_listed(&api, "first", 1).await?;
    let paths = [
        "/v1/evaluations".to_owned(),
        "/v1/evaluations/summary".to_owned(),
        "/v1/evaluations/summary?from=0&step=week&by=source".to_owned(),
        "/v1/evaluations/summary?involvement=no_ai".to_owned(),
        format!("/v1/tickets/{first}/neighbours"),
    ];
    let mut cases = Cases::default();
    let mut known = Vec::new();
    for path in &paths {
        let etag = api.get(path).await?.header("etag").to_owned();
        cases.check(
            format!("{path}: unchanged"),
            expect_unchanged(&get_if_changed(&api, path, &etag).await?, &etag),
        );
        known.push(etag);
    }
    cases.check("coverage of one", expect_coverage(&api, 1).await);
    import_listed(&api, "second", 2).await?;
    for (path, etag) in paths.iter().zip(&known) {
        cases.check(
            format!("{path}: changed"),
            expect_changed(&get_if_changed(&api, path, etag).await?, etag),
        );
    }
    cases.check("coverage of two", expect_coverage(&api, 2).await);
    cases.finish()
}

/// Imports a conversation, and waits until the list has as many as this.
async fn import_listed(api: &Api, name: &str, count: usize) -> Result<String> {
    let id = api.import(&conversation(name)).await?;
    api.await_listed(("limit", "1"), count).await?;
    Ok(id)
}

async fn get_if_changed(api: &Api, path: &str, etag: &str) -> Result<Reply> {
    api.reply(api.request(Method::GET, path).header("If-None-Match", etag)).await
}

fn expect_unchanged(reply: &Reply, etag: &str) -> Result<()> {
    ensure!(!etag.is_empty(), "no ETag");
    ensure!(reply.status == 304 && reply.body.is_empty(), "{}: {}", reply.status, reply.text());
    ensure!(reply.header("etag") == etag, "{:?} instead of {etag:?}", reply.header("etag"));
    Ok(())
}

fn expect_changed(reply: &Reply, etag: &str) -> Result<()> {
    reply.expect_status(200)?;
    ensure!(!["", etag].contains(&reply.header("etag")), "{etag} was not replaced");
    Ok(())
}

/// Only a summary of all conversations says how many imports it covers.
async fn expect_coverage(api: &Api, count: u64) -> Result<()> {
    let summary = api.get("/v1/evaluations/summary").await?.expect(200)?;
    let expected =
        json!({"imported": count, "scored": 0, "not_applicable": count, "failed": 0, "pending": 0});
    ensure!(summary["coverage"] == expected, "{}", summary["coverage"]);
    let of_filter = api.get("/v1/evaluations/summary?involvement=no_ai").await?.expect(200)?;
    ensure!(of_filter["totals"]["count"] == count, "{}", of_filter["totals"]);
    ensure!(of_filter["coverage"] == Value::Null, "{}", of_filter["coverage"]);
    Ok(())
}
