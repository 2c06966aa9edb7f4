//! A 202 is durable: after a crash the ticket exists, is evaluated once and exported once. So is the 204 of a deletion: the
//! ticket is gone.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::{Value, json};

use crate::harness::{Api, Kind, PrivateStack, by_ai, text, until};

/// Processes with work in flight. The standalone is killed as a whole.
const KILLED: [&str; 3] = ["ingest", "scoring-worker", "export-worker"];
/// Imports of each round, and after how many answers the processes are killed.
const IMPORTS: usize = 150;
const KILL_AFTER: usize = 60;
const ROUNDS: usize = 2;

/// Two crashes during imports, and one right after deletions.
pub async fn run(stack: &mut PrivateStack) -> Result<()> {
    stack.start().await?;
    stack.api()?.register("bot").await?;
    let mut accepted = BTreeSet::new();
    for round in 0..ROUNDS {
        accepted.extend(import_until_killed(stack, round).await?);
        stack.start().await?;
    }
    if stack.kind() == Kind::Standalone {
        // Only the first start prints a sign-in link. Its output goes to a log file, so later starts must not print one.
        let printed = stack.logs()?.matches("/console/sign-in?token=").count();
        ensure!(printed == 1, "{printed} sign-in links are in the logs after {ROUNDS} restarts");
    }
    let api = stack.api()?;
    for id in &accepted {
        api.get(&format!("/v1/tickets/{id}")).await?.expect(200).context("accepted, and lost")?;
    }
    let all = send_all_again(&api).await?;
    ensure!(all.len() == ROUNDS * IMPORTS, "{} tickets for {} conversations", all.len(), ROUNDS * IMPORTS);
    ensure!(accepted.is_subset(&all), "an accepted ticket has another id now");
    for id in &all {
        let evaluation = api.evaluation(id).await?;
        ensure!(evaluation["status"] == "scored", "{evaluation}");
    }
    rows_are_complete(&api, &all).await?;
    super::deletion::across_a_crash(stack).await
}

/// Imports until the processes are killed; returns the ticket ids of all 202 responses.
async fn import_until_killed(stack: &mut PrivateStack, round: usize) -> Result<BTreeSet<String>> {
    let api = stack.api()?;
    let mut answers = stream::iter(0..IMPORTS)
        .map(|number| {
            let (api, body) = (api.clone(), body(round, number));
            async move { api.post("/v1/assess", &body).await }
        })
        .buffer_unordered(16)
        .boxed();
    let mut accepted = BTreeSet::new();
    let mut is_killed = false;
    while let Some(reply) = answers.next().await {
        match reply {
            Ok(reply) if reply.status == 202 => {
                accepted.insert(text(&reply.expect(202)?, "id")?);
            }
            Ok(reply) if is_killed => drop(reply.problem(503, "unavailable")?),
            Ok(reply) => reply.expect_status(202)?,
            Err(error) => ensure!(is_killed, "before anything was killed: {error:#}"),
        }
        if accepted.len() == KILL_AFTER && !is_killed {
            stack.kill(&KILLED);
            is_killed = true;
        }
    }
    ensure!(is_killed, "nothing was killed");
    Ok(accepted)
}

fn body(round: usize, number: usize) -> Value {
    by_ai(&format!("round-{round}-{number}"), "bot")
}

/// Accepted conversations are duplicates now; the rest is accepted. Returns all ticket ids.
async fn send_all_again(api: &Api) -> Result<BTreeSet<String>> {
    let mut ids = BTreeSet::new();
    for round in 0..ROUNDS {
        for number in 0..IMPORTS {
            let reply = api.post("/v1/assess", &body(round, number)).await?;
            ids.insert(match reply.status {
                409 => text(&reply.problem(409, "duplicate-import")?, "ticket_id")?,
                _ => text(&reply.expect(202)?, "id")?,
            });
        }
    }
    Ok(ids)
}

/// Exactly one row per ticket.
async fn rows_are_complete(api: &Api, tickets: &BTreeSet<String>) -> Result<()> {
    for kind in ["axis", "resolution_audit"] {
        until("an export of all evaluations", async || {
            let exported = api.table(&json!({"kind": kind})).await?.distinct_tickets()?;
            ensure!(exported.is_subset(tickets), "a row of an unknown ticket");
            Ok((exported == *tickets).then_some(()))
        })
        .await?;
    }
    Ok(())
}
