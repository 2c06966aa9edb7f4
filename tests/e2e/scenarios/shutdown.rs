//! Graceful shutdown answers every request received and loses nothing; a second signal ends the process at once.

#![allow(clippy::print_stderr, reason = "prints measured figures")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_testkit::process::Signal;
use futures_util::future::{join, join_all, try_join_all};
use serde_json::Value;

use crate::harness::{Api, Kind, PrivateStack, RawConnection, Stack, conversation, text, until};

/// Requests whose heads were received before the signal.
const HELD: usize = 100;
/// Clients that import sequentially during the shutdown.
const CLIENTS: usize = 32;
/// Time limit of a graceful shutdown on a busy machine.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// Stops the gateway and ingest under load, one after the other.
pub async fn under_load(stack: &mut PrivateStack) -> Result<()> {
    stack.start().await?;
    let processes: &[&str] = match stack.kind() {
        Kind::Standalone => &["standalone"],
        Kind::Distributed => &["gateway", "ingest"],
    };
    for process in processes {
        let accepted =
            stop_under_load(stack, process).await.with_context(|| format!("stopping {process}"))?;
        stack.start().await?;
        let api = stack.api()?;
        for ticket in &accepted {
            api.get(&format!("/v1/tickets/{ticket}")).await?.expect(200).context("accepted, and lost")?;
        }
        for ticket in &accepted {
            api.evaluation(ticket).await?;
        }
        eprintln!("{process}: {} accepted around the stop, none lost", accepted.len());
    }
    Ok(())
}

/// Returns the ids of accepted tickets.
async fn stop_under_load(stack: &mut PrivateStack, process: &str) -> Result<BTreeSet<String>> {
    let api = stack.api()?;
    // The gateway refuses imports while ingest is stopped.
    let may_be_refused = process == "ingest";
    let held =
        try_join_all((0..HELD).map(|number| held_request(stack, format!("{process}-held-{number}")))).await?;
    let is_over = AtomicBool::new(false);
    let clients = join_all((0..CLIENTS).map(|client| import_sequentially(&api, process, client, &is_over)));
    let stopping = async {
        until("the clients to be at work", async || {
            Ok((api.get("/v1/evaluations/exports").await?.status == 200).then_some(()))
        })
        .await?;
        stack.signal(process, Signal::SIGTERM)?;
        // Completes the held requests: each is answered.
        let answers = try_join_all(held.into_iter().map(finish)).await?;
        let status = until("the process to end", async || Ok(stack.exit_status(process)?)).await?;
        is_over.store(true, Ordering::Relaxed);
        ensure!(status.success(), "{process} ended with {status}");
        anyhow::Ok(answers)
    };
    let (clients, answers) = join(clients, tokio::time::timeout(STOP_LIMIT, stopping)).await;
    let mut accepted = BTreeSet::new();
    for (status, receipt) in answers.context("it did not stop in time")?? {
        ensure!(
            status == 202 || (status == 503 && may_be_refused),
            "a received request got {status}: {receipt}"
        );
        accepted.extend(receipt["id"].as_str().map(str::to_owned));
    }
    for client in clients {
        accepted.extend(client?);
    }
    stack.kill(&[process]);
    Ok(accepted)
}

/// A connection with a received head (100 Continue was sent).
struct Held {
    connection: RawConnection,
    body: String,
}

async fn held_request(stack: &Stack, ticket_id: String) -> Result<Held> {
    let body = conversation(&ticket_id).to_string();
    Ok(Held { connection: RawConnection::hold_import(stack, body.len()).await?, body })
}

async fn finish(held: Held) -> Result<(u16, Value)> {
    let Held { mut connection, body } = held;
    connection.send(body.as_bytes()).await?;
    let answer = connection.reply().await.context("a request whose head was received was not answered")?;
    Ok((answer.status, serde_json::from_slice(&answer.body)?))
}

/// Imports sequentially until stopped; returns the accepted ids. During the restart connections may be refused or closed,
/// but every response is a documented one.
async fn import_sequentially(
    api: &Api,
    process: &str,
    client: usize,
    is_over: &AtomicBool,
) -> Result<Vec<String>> {
    let mut accepted = Vec::new();
    for number in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        match api.post("/v1/assess", &conversation(&format!("{process}-{client}-{number}"))).await {
            Ok(answer) if answer.status == 202 => {
                accepted.push(text(&answer.expect(202)?, "id")?);
            }
            Ok(answer) => drop(answer.problem(503, "unavailable")?),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    Ok(accepted)
}

/// An incomplete request delays the shutdown; a second signal does not wait for it.
pub async fn second_signal(stack: &mut PrivateStack) -> Result<()> {
    stack.start().await?;
    let process = if stack.kind() == Kind::Standalone { "standalone" } else { "gateway" };
    for second in [Signal::SIGTERM, Signal::SIGINT] {
        let held = held_request(stack, format!("held-{second}")).await?;
        // The log may hold earlier shutdowns.
        let shutdowns = count_shutdowns(stack, process);
        stack.signal(process, Signal::SIGTERM)?;
        until("the shutdown to begin", async || {
            Ok((count_shutdowns(stack, process) > shutdowns).then_some(()))
        })
        .await?;
        ensure!(stack.exit_status(process)?.is_none(), "it did not wait for the incomplete request");
        let began = Instant::now();
        stack.signal(process, second)?;
        let status = until("the end", async || Ok(stack.exit_status(process)?)).await?;
        let took = began.elapsed();
        eprintln!("{process}: ended {took:?} after a second {second}");
        ensure!(took < Duration::from_secs(1), "{took:?}");
        ensure!(status.code() == Some(130), "{status}");
        drop(held);
        stack.kill(&[process]);
        stack.start().await?;
    }
    Ok(())
}

fn count_shutdowns(stack: &PrivateStack, process: &str) -> usize {
    std::fs::read_to_string(stack.log(process)).unwrap_or_default().matches("stopping;").count()
}
