//! Memory of hostile bodies and conversations, under the limits of `deploy/`: JSON that expands when it is parsed, subjects and
//! messages of megabytes, agents with long names.

#![allow(clippy::print_stderr, reason = "prints measured figures")]

use std::fs;

use anyhow::{Context, Result, ensure};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::harness::{
    Api, Kind, PrivateStack, Session, conversation, edited, message, set, text, unset, until,
};

/// The largest body (4 MiB).
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// A body may cost a process this many times its size while it is handled.
const MAX_FACTOR: u64 = 5;

/// Memory that the first requests cost in any case: threads, connections, caches.
const FIRST_REQUESTS_KIB: u64 = 16 * 1024;

/// Memory that the allocator keeps afterwards, whatever number of bodies there was.
const KEPT_KIB: u64 = 64 * 1024;

/// Imports with large subjects.
const SUBJECTS: usize = 100;

/// Conversations with large messages.
const LARGE_CONVERSATIONS: usize = 16;

/// Agents with names and ids of the maximum length, and conversations in which all of them write.
const LONG_AGENTS: usize = 49;
const AGENT_CONVERSATIONS: usize = 60;

/// Lists of these that are read at once.
const LISTS: usize = 12;

/// Reads of one large ticket or transcript at once.
const READS: usize = 200;

/// Hostile bodies at once.
const AT_ONCE: usize = 8;

const PATHS: [&str; 4] = ["/v1/assess", "/v1/agents", "/v1/evaluations/exports", "/v1/webhooks"];

/// One body at a time, several at once, then large subjects and messages through the whole path.
pub async fn run(stack: &mut PrivateStack) -> Result<()> {
    if !stack.has_memory_limits() {
        eprintln!("  no control groups here: peaks are compared with the limits, nothing enforces them");
    }
    stack.start().await?;
    let api = stack.api()?;
    api.import(&conversation("warm-up")).await?;
    let at_start = stack.memory_kib("VmRSS:")?;
    one_by_one(stack, &api, FIRST_REQUESTS_KIB).await?;
    // Again, now that the memory of the first requests is in use.
    one_by_one(stack, &api, 0).await?;
    stack.check_memory_limits("bodies one by one")?;
    expect_given_back(stack, &at_start, FIRST_REQUESTS_KIB + KEPT_KIB, "bodies one by one").await?;
    for path in PATHS {
        for (name, body) in expanding_bodies() {
            let replies = join_all((0..AT_ONCE).map(|_| api.post_bytes(path, body.clone()))).await;
            for reply in replies {
                // 503: the budget of bodies in memory.
                let status = reply?.status;
                ensure!(status < 500 || status == 503, "{AT_ONCE} times {name} to {path}: {status}");
            }
        }
    }
    stack.check_memory_limits("eight bodies at once")?;
    expect_given_back(stack, &at_start, FIRST_REQUESTS_KIB + KEPT_KIB, "eight bodies at once").await?;
    accepted_bodies(stack, &api, FIRST_REQUESTS_KIB).await?;
    accepted_bodies(stack, &api, 0).await?;
    large_subjects(stack, &api).await?;
    large_messages(stack, &api).await?;
    long_agents(stack, &api).await
}

/// Each body on each path costs a process at most [`MAX_FACTOR`] times its size, and `allowance_kib`.
async fn one_by_one(stack: &PrivateStack, api: &Api, allowance_kib: u64) -> Result<()> {
    for path in PATHS {
        for (name, body) in expanding_bodies() {
            reset_peaks(stack)?;
            let before = stack.memory_kib("VmHWM:")?;
            let reply = api.post_bytes(path, body).await?;
            ensure!(reply.status < 500, "{name} to {path}: {}", reply.status);
            for ((process, before), (_, after)) in before.into_iter().zip(stack.memory_kib("VmHWM:")?) {
                let most = before + allowance_kib + MAX_FACTOR * (MAX_BODY_BYTES as u64) / 1024;
                ensure!(after <= most, "{name} to {path}: {process} went from {before} to {after} KiB");
            }
        }
    }
    Ok(())
}

/// Conversations of 4 MiB that are accepted, so that every role gets them: each costs a role at most [`MAX_FACTOR`] times its size,
/// and a process `allowance_kib`.
async fn accepted_bodies(stack: &PrivateStack, api: &Api, allowance_kib: u64) -> Result<()> {
    // The standalone is gateway and ingest.
    let hops = if stack.kind() == Kind::Standalone { 2 } else { 1 };
    for (name, beginning) in [("unread", r#","x":["#), ("subject", r#","subject":""#)] {
        let item = if name == "unread" { "[[],[[]]]," } else { r"\n" };
        let end = if name == "unread" { "0]}" } else { r#""}"# };
        let start = edited(conversation(&format!("accepted-{name}-{allowance_kib}")), &[unset("/subject")])
            .to_string();
        let start = start.strip_suffix('}').context("no object")?.to_owned() + beginning;
        let items = (MAX_BODY_BYTES - start.len() - end.len()) / item.len();
        let body = format!("{start}{}{end}", item.repeat(items)).into_bytes();
        reset_peaks(stack)?;
        let before = stack.memory_kib("VmHWM:")?;
        let receipt = api.post_bytes("/v1/assess", body).await?.expect(202)?;
        let evaluation = api.evaluation(&text(&receipt, "id")?).await?;
        ensure!(evaluation["status"] != "failed", "{name}: {evaluation}");
        for ((process, before), (_, after)) in before.into_iter().zip(stack.memory_kib("VmHWM:")?) {
            eprintln!("  accepted body, {name}: {process} went from {before} to {after} KiB");
            let most = before + allowance_kib + hops * MAX_FACTOR * (MAX_BODY_BYTES as u64) / 1024;
            ensure!(after <= most, "{name}: {process} went from {before} to {after} KiB");
        }
    }
    stack.check_memory_limits("accepted bodies")
}

/// The memory in use falls to what it was at the start, and `allowance_kib`.
async fn expect_given_back(
    stack: &PrivateStack,
    at_start: &[(&'static str, u64)],
    allowance_kib: u64,
    what: &str,
) -> Result<()> {
    let mut now = Vec::new();
    let is_low = until("the memory to be given back", async || {
        // The allocator returns memory when its threads work: in production they answer a probe every few seconds.
        stack.api()?.get("/healthz").await?;
        now = stack.memory_kib("VmRSS:")?;
        let is_low = now.iter().zip(at_start).all(|((_, now), (_, start))| *now <= start + allowance_kib);
        Ok(is_low.then_some(()))
    });
    let is_low = is_low.await;
    for ((process, now), (_, start)) in now.iter().zip(at_start) {
        eprintln!("  {what}: {process} uses {} MiB, at the start {} MiB", now / 1024, start / 1024);
    }
    is_low.context(what.to_owned())
}

/// Nested arrays in a field that is not read, and in one that is; objects; many elements.
fn expanding_bodies() -> Vec<(&'static str, Vec<u8>)> {
    let nested = "[".repeat(120) + &"]".repeat(120);
    let filled = |before: &str, item: &str, after: &str| {
        let count = (MAX_BODY_BYTES - before.len() - after.len()) / (item.len() + 1);
        format!("{before}{}{after}", vec![item; count].join(",")).into_bytes()
    };
    vec![
        ("unread nested arrays", filled(r#"{"external_id":"a","name":"b","x":["#, &nested, "]}")),
        ("read nested arrays", filled(r#"{"name":["#, &nested, "]}")),
        ("unread objects", filled(r#"{"external_id":"a","name":"b","x":["#, "{}", "]}")),
        ("numbers in a list that is read", filled(r#"{"messages":["#, "1", "]}")),
    ]
}

/// All are evaluated and in the file.
async fn large_subjects(stack: &PrivateStack, api: &Api) -> Result<()> {
    // 4 MB: eight bytes each.
    let subject = "Größe ".repeat(500_000);
    reset_peaks(stack)?;
    let body = |number| {
        edited(conversation(&format!("subject-{number}")), &[set("/subject", format!("{number} {subject}"))])
    };
    let tickets = import_all(stack, api, SUBJECTS, body).await?;
    let stored = api.get(&format!("/v1/tickets/{}", tickets[0])).await?.expect(200)?;
    ensure!(stored["subject"].as_str().is_some_and(|text| text.ends_with(&subject)), "the subject was cut");
    for kind in ["axis", "resolution_audit"] {
        let file = api.file(&api.export(&json!({"kind": kind})).await?).await?;
        // Files have at most 1,000 characters of a subject (`MAX_SUBJECT_CHARS`).
        ensure!(file.len() < SUBJECTS * 8 * 1024, "the file has {} bytes", file.len());
        let text = String::from_utf8(file)?;
        let missing = (0..SUBJECTS).find(|number| !text.contains(&format!(",subject-{number},")));
        ensure!(missing.is_none(), "subject-{missing:?} is not in the file {kind}");
    }
    stack.check_memory_limits("a hundred subjects of 4 MB")?;
    read_at_once(stack, api, &format!("/v1/tickets/{}", tickets[0])).await
}

/// Some reads may be refused: too many requests, or too many large responses, are in flight.
async fn read_at_once(stack: &PrivateStack, api: &Api, path: &str) -> Result<()> {
    reset_peaks(stack)?;
    let read = async || Ok::<_, anyhow::Error>(api.get(path).await?.status);
    let statuses: Vec<u16> = join_all((0..READS).map(|_| read())).await.into_iter().collect::<Result<_>>()?;
    let answered = statuses.iter().filter(|status| **status == 200).count();
    eprintln!("  {READS} reads of {path} at once: {answered} answered");
    ensure!(statuses.iter().all(|status| matches!(status, 200 | 503)), "{path}: {statuses:?}");
    ensure!(answered > 0, "{path}: none was answered");
    stack.check_memory_limits("reads at once")
}

/// Transcripts of megabytes, which scoring-worker gets in pages.
async fn large_messages(stack: &PrivateStack, api: &Api) -> Result<()> {
    let text = "Where is my order 5521? ".repeat(160_000);
    reset_peaks(stack)?;
    let body = |number| {
        edited(
            conversation(&format!("messages-{number}")),
            &[set("/messages/0/content", format!("{number} {text}"))],
        )
    };
    let tickets = import_all(stack, api, LARGE_CONVERSATIONS, body).await?;
    stack.check_memory_limits("large messages")?;
    read_at_once(stack, api, &format!("/v1/tickets/{}/transcript", tickets[0])).await?;
    reset_peaks(stack)?;
    open_pages(stack, &tickets).await?;
    stack.check_memory_limits("pages of large messages")
}

/// A body names agents by short ids: without bounds each row of a list would have 400 kB.
async fn long_agents(stack: &PrivateStack, api: &Api) -> Result<()> {
    let mut messages =
        vec![message(0, &json!({"type": "contact", "external_id": "ann"}), "Who are you all?")];
    let mut agent = String::new();
    for number in 1..=LONG_AGENTS {
        let id = api.register(&format!("{number:04}{}", "名".repeat(1_000))).await?;
        agent.clone_from(&id);
        messages.push(message(number, &json!({"type": "ai", "id": id}), "I am one of the agents."));
    }
    reset_peaks(stack)?;
    let body =
        |number| edited(conversation(&format!("agents-{number}")), &[set("/messages", messages.clone())]);
    import_all(stack, api, AGENT_CONVERSATIONS, body).await?;
    let listed = until("the conversations in the list", async || {
        let list = api.get(&format!("/v1/evaluations?limit=100&agent={agent}")).await?.expect(200)?;
        Ok((list["data"].as_array().map(Vec::len) == Some(AGENT_CONVERSATIONS)).then_some(list))
    });
    let agents = listed.await?["data"][0]["ticket"]["agents"].clone();
    ensure!(agents.as_array().map(Vec::len) == Some(LONG_AGENTS), "{agents}");
    let external_id = agents[0]["external_id"].as_str().context("no external id")?;
    let is_short = external_id.ends_with('…') && external_id.chars().count() == 65;
    ensure!(external_id.starts_with("0001") && is_short, "{external_id}");
    for path in ["/v1/evaluations?limit=100", "/v1/evaluations/summary"] {
        for reply in join_all((0..LISTS).map(|_| api.get(path))).await {
            let reply = reply?;
            ensure!(matches!(reply.status, 200 | 503), "{path}: {}", reply.status);
        }
    }
    stack.check_memory_limits("agents with long names")
}

/// Opens the page of each conversation in the console, all at once.
async fn open_pages(stack: &PrivateStack, tickets: &[String]) -> Result<()> {
    let session = Session::open(stack, stack.organization()).await?;
    let page = async |id: &String| session.get(&format!("/console/conversations/{id}")).await;
    for reply in join_all(tickets.iter().map(page)).await {
        let reply = reply?;
        ensure!(reply.status == 200, "{}: {}", reply.request_line, reply.status);
        ensure!(String::from_utf8(reply.body)?.contains("Where is my order 5521?"), "no text on the page");
    }
    Ok(())
}

/// Imports conversations while nothing is evaluated, where that is possible, so that they are evaluated together.
async fn import_all(
    stack: &PrivateStack,
    api: &Api,
    count: usize,
    body: impl Fn(usize) -> Value,
) -> Result<Vec<String>> {
    use assay_testkit::process::Signal;

    let has_separate_worker = stack.kind() == Kind::Distributed;
    if has_separate_worker {
        stack.signal("scoring-worker", Signal::SIGSTOP)?;
    }
    let mut tickets = Vec::new();
    for number in 0..count {
        tickets.push(api.import(&body(number)).await?);
    }
    if has_separate_worker {
        stack.signal("scoring-worker", Signal::SIGCONT)?;
    }
    for id in &tickets {
        let evaluation = api.evaluation(id).await?;
        ensure!(evaluation["status"] != "failed", "{evaluation}");
    }
    Ok(tickets)
}

/// Sets the peaks to the memory in use (proc(5), `clear_refs`).
fn reset_peaks(stack: &PrivateStack) -> Result<()> {
    for name in stack.process_names() {
        fs::write(format!("/proc/{}/clear_refs", stack.pid(name)?), "5")?;
    }
    Ok(())
}
