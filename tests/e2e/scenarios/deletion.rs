//! `DELETE /v1/tickets/{id}`: a deleted ticket is gone everywhere, at any stage of processing, and stays gone.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use serde_json::{Value, json};

use crate::harness::{Api, Cases, PrivateStack, Stack, Table, by_ai, edited, set, text, unset, until};

/// Tickets that are deleted while they are evaluated.
const RACES: usize = 24;

/// Deletion of evaluated tickets, of tickets in flight, and concurrently.
pub async fn run(stack: &Stack) -> Result<()> {
    let api = stack.api()?;
    api.register("bot").await?;
    let kept = api.import(&by_ai("kept", "bot")).await?;
    api.evaluation(&kept).await?;
    let mut cases = Cases::default();
    cases.check("malformed ids", malformed_ids(&api, &kept).await);
    cases.check("an evaluated ticket", evaluated_ticket(&api, &kept).await);
    cases.check("the identity stays used", identity_stays_used(&api).await);
    cases.check("several at once", concurrent_deletions(&api).await);
    cases.check("tickets in flight", tickets_in_flight(&api, &kept).await);
    cases.finish()
}

/// Every unknown or malformed id gets the same 404, so that the response does not reveal which ids exist. `isolation.rs` tests who
/// may delete.
async fn malformed_ids(api: &Api, kept: &str) -> Result<()> {
    let mut details = Vec::new();
    for id in ["0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11", "kept", "%00", &kept.to_uppercase()] {
        let problem = api.delete(&format!("/v1/tickets/{id}")).await?.problem(404, "ticket-not-found")?;
        details.push(problem["detail"].clone());
    }
    ensure!(details.iter().all(|detail| *detail == details[0]), "different answers: {details:?}");
    Ok(())
}

async fn evaluated_ticket(api: &Api, kept: &str) -> Result<()> {
    let id = api.import(&by_ai("evaluated", "bot")).await?;
    api.evaluation(&id).await?;
    let before = api.export(&json!({"kind": "axis"})).await?;
    ensure!(tickets_of(api, &before).await?.contains(&id), "the export before lacks the ticket");
    let reply = api.delete(&format!("/v1/tickets/{id}")).await?;
    reply.expect_status(204)?;
    ensure!(reply.body.is_empty(), "204 with a body: {}", reply.text());
    expect_gone(api, &id).await?;
    // Existing files are kept for their own retention period.
    let again = api.await_complete(&text(&before, "id")?).await?;
    ensure!(tickets_of(api, &again).await?.contains(&id), "the file has changed");
    expect_exported(api, &BTreeSet::from([kept.to_owned()])).await
}

async fn identity_stays_used(api: &Api) -> Result<()> {
    let id = api.import(&by_ai("used", "bot")).await?;
    api.delete(&format!("/v1/tickets/{id}")).await?.expect_status(204)?;
    for edits in [vec![], vec![unset("/subject")], vec![set("/messages/0/content", "Something else")]] {
        let reply = api.post("/v1/assess", &edited(by_ai("used", "bot"), &edits)).await?;
        let problem = reply.problem(409, "duplicate-import")?;
        ensure!(problem["ticket_id"] == id.as_str(), "another ticket: {problem}");
    }
    expect_gone(api, &id).await
}

async fn concurrent_deletions(api: &Api) -> Result<()> {
    let id = api.import(&by_ai("several", "bot")).await?;
    let path = format!("/v1/tickets/{id}");
    let replies = try_join_all((0..8).map(|_| api.delete(&path))).await?;
    let (deleted, refused): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 204);
    ensure!(deleted.len() == 1, "{} of 8 deletions succeeded", deleted.len());
    refused.iter().try_for_each(|reply| reply.problem(404, "ticket-not-found").map(drop))?;
    expect_gone(api, &id).await
}

/// Deleted right after the receipt, so that events of both kinds are in flight together.
async fn tickets_in_flight(api: &Api, kept: &str) -> Result<()> {
    let races = (0..RACES).map(|number| async move {
        let id = api.import(&by_ai(&format!("race-{number}"), "bot")).await?;
        // Varying delays, up to a complete evaluation.
        for _ in 0..number % 4 {
            api.get(&format!("/v1/tickets/{id}/evaluation")).await?.expect(200)?;
        }
        api.delete(&format!("/v1/tickets/{id}")).await?.expect_status(204)?;
        expect_gone(api, &id).await?;
        anyhow::Ok(id)
    });
    let deleted = try_join_all(races).await?;
    // Accepted after all of them.
    let last = api.import(&by_ai("last-race", "bot")).await?;
    api.evaluation(&last).await?;
    expect_exported(api, &BTreeSet::from([kept.to_owned(), last.clone()])).await?;
    for id in &deleted {
        expect_gone(api, id).await?;
    }
    api.delete(&format!("/v1/tickets/{last}")).await?.expect_status(204)
}

/// Deleted tickets are gone after a crash right after the deletion.
pub async fn across_a_crash(stack: &mut PrivateStack) -> Result<()> {
    let api = stack.api_of("deletions").await?;
    api.register("bot").await?;
    let mut deleted = Vec::new();
    for number in 0..10 {
        let id = api.import(&by_ai(&format!("crash-{number}"), "bot")).await?;
        api.delete(&format!("/v1/tickets/{id}")).await?.expect_status(204)?;
        deleted.push(id);
    }
    stack.kill(&["ingest", "scoring-worker", "export"]);
    stack.start().await?;
    for id in &deleted {
        expect_gone(&api, id).await?;
    }
    let last = api.import(&by_ai("after-the-crash", "bot")).await?;
    api.evaluation(&last).await?;
    expect_exported(&api, &BTreeSet::from([last])).await
}

async fn expect_gone(api: &Api, id: &str) -> Result<()> {
    let path = format!("/v1/tickets/{id}");
    for part in ["", "/evaluation", "/transcript"] {
        api.get(&format!("{path}{part}")).await?.problem(404, "ticket-not-found")?;
    }
    api.delete(&path).await?.problem(404, "ticket-not-found").map(drop)
}

/// Waits until exports of both kinds hold exactly these tickets; the next exports must hold them, too.
async fn expect_exported(api: &Api, tickets: &BTreeSet<String>) -> Result<()> {
    for kind in ["axis", "resolution_audit"] {
        let export = async || api.table(&json!({"kind": kind})).await?.distinct_tickets();
        until("an export without deleted tickets", async || Ok((export().await? == *tickets).then_some(())))
            .await?;
        ensure!(export().await? == *tickets, "a deleted ticket is back in an export");
    }
    Ok(())
}

async fn tickets_of(api: &Api, export: &Value) -> Result<BTreeSet<String>> {
    Table::read(&api.file(export).await?)?.distinct_tickets()
}
