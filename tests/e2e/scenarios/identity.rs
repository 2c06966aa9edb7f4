//! A conversation is imported once: its identity is `source_account_id`, or `source` without one, with `ticket_id`.

use anyhow::{Context, Result, ensure};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::harness::{Api, Cases, Stack, conversation, edited, set};

/// How many equal imports are sent at once.
const AT_ONCE: usize = 50;

/// One 202 for each identity.
pub async fn run(stack: &Stack) -> Result<()> {
    let api = stack.api()?;
    let mut cases = Cases::default();
    cases.check("equal imports at once", at_once(&api, &conversation("at-once")).await);
    let with_account = edited(conversation("at-once"), &[set("/source_account_id", "eu")]);
    cases.check("equal imports of an account at once", at_once(&api, &with_account).await);
    cases.check("a changed transcript", changed_transcript(&api).await);
    cases.check("identities", identities(&api).await);
    cases.finish()
}

async fn at_once(api: &Api, body: &Value) -> Result<()> {
    let replies = join_all((0..AT_ONCE).map(|_| api.post("/v1/assess", body))).await;
    let mut accepted = Vec::new();
    let mut duplicates = Vec::new();
    for reply in replies {
        let reply = reply?;
        if reply.status == 202 {
            accepted.push(reply.expect(202)?["id"].clone());
        } else {
            duplicates.push(reply.problem(409, "duplicate-import")?["ticket_id"].clone());
        }
    }
    ensure!(accepted.len() == 1, "{} of {AT_ONCE} were accepted", accepted.len());
    ensure!(duplicates.iter().all(|id| *id == accepted[0]), "{duplicates:?} instead of {}", accepted[0]);
    Ok(())
}

/// The identity is what counts, not the rest of the body; the first import stays as it is.
async fn changed_transcript(api: &Api) -> Result<()> {
    let id = api.import(&conversation("changed")).await?;
    let changed =
        edited(conversation("changed"), &[set("/subject", "Other"), set("/messages/0/content", "Other")]);
    expect_duplicate(api, &changed, &id).await?;
    let ticket = api.get(&format!("/v1/tickets/{id}")).await?.expect(200)?;
    ensure!(ticket["subject"] == conversation("changed")["subject"], "{ticket}");
    Ok(())
}

async fn expect_duplicate(api: &Api, body: &Value, id: &str) -> Result<()> {
    let problem = api.post("/v1/assess", body).await?.problem(409, "duplicate-import")?;
    ensure!(problem["ticket_id"] == id, "{} instead of {id}", problem["ticket_id"]);
    Ok(())
}

/// `(account, ticket)` and `(source, ticket)` are disjoint; with an account the source does not count.
async fn identities(api: &Api) -> Result<()> {
    let body = |source: Option<&str>, account: Option<&str>, ticket: &str| {
        let mut body = conversation(ticket);
        body["source"] = json!(source.unwrap_or("custom"));
        if source.is_none() {
            body.as_object_mut().map(|body| body.remove("source"));
        }
        if let Some(account) = account {
            body["source_account_id"] = json!(account);
        }
        body
    };
    let first = [
        body(None, None, "t"),
        body(Some("zendesk"), None, "t"),
        body(Some("Zendesk"), None, "t"),
        body(Some("zendesk "), None, "t"),
        body(None, Some("zendesk"), "t"),
        body(None, Some("custom"), "t"),
        body(None, None, "T"),
        body(None, None, " t"),
        body(None, None, "tt"),
        body(Some("zendeskt"), None, "t"),
        // One letter in two forms of Unicode: other bytes, another identity.
        body(None, None, "caf\u{e9}"),
        body(None, None, "cafe\u{301}"),
        body(None, None, "ß"),
        body(None, None, "ss"),
    ];
    // Duplicates: the index of the body in `first` that has the same identity.
    let again = [
        (0, body(Some("custom"), None, "t")),
        (1, body(Some("zendesk"), None, "t")),
        (4, body(Some("zendesk"), Some("zendesk"), "t")),
        (4, body(Some("another"), Some("zendesk"), "t")),
        (5, body(Some("zendesk"), Some("custom"), "t")),
    ];
    let mut ids = Vec::new();
    for body in &first {
        let receipt = api.post("/v1/assess", body).await?.expect(202).with_context(|| format!("{body}"))?;
        let source = body["source"].as_str().unwrap_or("custom");
        ensure!(receipt["source"] == source, "{receipt} of {body}");
        ids.push(receipt["id"].as_str().context("no id")?.to_owned());
    }
    for (index, body) in &again {
        expect_duplicate(api, body, &ids[*index]).await.with_context(|| format!("{body}"))?;
    }
    Ok(())
}
