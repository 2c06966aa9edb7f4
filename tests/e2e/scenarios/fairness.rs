//! Fairness: one organization imports as fast as it can, another a few conversations per second. The second one gets its
//! evaluations within seconds, however many conversations of the first one wait.

#![allow(clippy::print_stderr, reason = "prints measured figures")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use assay_platform::runtime::LockExt as _;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use crate::harness::{Api, PrivateStack, WAIT_LIMIT, conversation, edited, message, set, text};

/// From the 202 to the evaluation, for nineteen of twenty conversations of the small organization.
const MAX_P95: Duration = Duration::from_secs(5);
/// Interval between polls.
const POLL: Duration = Duration::from_millis(50);

/// Imports of the large organization in a second once it has its backlog.
const LATER_PER_SECOND: u32 = 100;

/// Imports of the small organization in a second, and for how long.
const SMALL_PER_SECOND: u32 = 10;
const SMALL_TIME: Duration = Duration::from_secs(60);

/// Messages of a conversation, and the text of each.
const MESSAGES: usize = 8;
const TEXT: &str = "My order has not arrived, although the confirmation said that it would be here on Tuesday. I have \
                    checked the address, the tracking page and the neighbours, and nobody knows where it is. Could you \
                    please find out what has happened, and tell me when I can expect it?";

struct LargeLoad {
    /// Conversations of the large organization, imported as fast as possible, before the small one begins.
    backlog: usize,
    /// Its imports in a second from then until the end; `None`: as fast as possible.
    later_per_second: Option<u32>,
    /// Concurrent imports of the large organization.
    connections: usize,
}

/// Tickets of the large organization, in about the order of their acceptance.
type Tickets = Arc<Mutex<Vec<String>>>;

/// The short form, in every test run: checks the order of evaluations, which does not depend on the speed of the machine.
/// While conversations of the small organization wait, the large one gets about as many evaluations, not its whole backlog.
pub async fn order_of_turns(stack: &mut PrivateStack) -> Result<()> {
    const BACKLOG: usize = 600;
    const SMALL: usize = 20;
    let load = LargeLoad { backlog: BACKLOG, later_per_second: None, connections: 8 };
    stack.start().await?;
    let (large, small) = organizations(stack).await?;
    let (tickets, is_over) = (Tickets::default(), Arc::new(AtomicBool::new(false)));
    let mut importing = import_until_over(&large, &load, &tickets, &is_over);
    wait_for_backlog(&load, &tickets, &mut importing).await?;
    is_over.store(true, Ordering::Relaxed);
    results_of(importing).await?;
    let done_before = evaluated(&large, &tickets).await?;
    let mut waiting = JoinSet::new();
    for number in 0..SMALL {
        waiting.spawn(import_and_wait_for_evaluation(small.clone(), number));
    }
    results_of(waiting).await?;
    let meanwhile = evaluated(&large, &tickets).await? - done_before;
    eprintln!("fairness of {:?}: {SMALL} evaluated, {meanwhile} of the large one meanwhile", stack.kind());
    ensure!(
        done_before + meanwhile < BACKLOG,
        "the large organization has no backlog any more: this proves nothing"
    );
    // By turns: as many as the small one, and those in flight. In the order of arrival it would be the whole backlog.
    ensure!(meanwhile <= 4 * SMALL, "{meanwhile} of the large organization came first");
    Ok(())
}

async fn organizations(stack: &PrivateStack) -> Result<(Api, Api)> {
    let (large, small) = (stack.api()?, stack.api_of("small").await?);
    large.register("bot").await?;
    small.register("bot").await?;
    Ok((large, small))
}

async fn wait_for_backlog(
    load: &LargeLoad,
    tickets: &Tickets,
    importing: &mut JoinSet<Result<()>>,
) -> Result<()> {
    while tickets.locked().len() < load.backlog {
        if let Some(ended) = importing.try_join_next() {
            bail!("an importer ended before the backlog was complete: {ended:?}");
        }
        sleep(POLL).await;
    }
    Ok(())
}

/// `make fairness`.
#[allow(clippy::disallowed_methods, reason = "a setting of the test, not of the product")]
pub async fn latency_beside_backlog(stack: &mut PrivateStack) -> Result<()> {
    let backlog = std::env::var("FAIRNESS_CONVERSATIONS").ok().map(|count| count.parse()).transpose()?;
    let backlog = backlog.unwrap_or(1_000_000);
    let load = LargeLoad { backlog, later_per_second: Some(LATER_PER_SECOND), connections: 128 };
    measure(stack, load).await
}

/// `make fairness`: the large organization imports as fast as it can all the time.
pub async fn latency_beside_imports(stack: &mut PrivateStack) -> Result<()> {
    let load = LargeLoad { backlog: 10_000, later_per_second: None, connections: 128 };
    measure(stack, load).await
}

async fn measure(stack: &mut PrivateStack, load: LargeLoad) -> Result<()> {
    stack.start().await?;
    let (large, small) = organizations(stack).await?;
    let (tickets, is_over) = (Tickets::default(), Arc::new(AtomicBool::new(false)));
    let began = Instant::now();
    let mut importing = import_until_over(&large, &load, &tickets, &is_over);
    wait_for_backlog(&load, &tickets, &mut importing).await?;
    let seeded = began.elapsed();
    let done_before = evaluated(&large, &tickets).await?;
    let times = import_and_wait(&small).await;
    let done = evaluated(&large, &tickets).await?;
    let accepted = tickets.locked().len();
    is_over.store(true, Ordering::Relaxed);
    results_of(importing).await?;
    let times = times?;
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    let (p50, p95, max) = (at(50), at(95), times.last().copied().unwrap_or_default());
    let kind = stack.kind();
    eprintln!("fairness of {kind:?}: {} conversations imported in {seeded:?}", load.backlog);
    eprintln!("  {} of the other organization: p50 {p50:?}, p95 {p95:?}, max {max:?}", times.len());
    eprintln!("  the large one meanwhile: {done_before} to {done} evaluated, {accepted} accepted");
    ensure!(done < accepted * 3 / 4, "the large organization has no backlog any more: this proves nothing");
    ensure!(done > done_before, "the large organization got no turn");
    ensure!(p95 <= MAX_P95, "p95 {p95:?}");
    Ok(())
}

/// Imports until `is_over`, as fast as possible up to the backlog.
fn import_until_over(
    api: &Api,
    load: &LargeLoad,
    tickets: &Tickets,
    is_over: &Arc<AtomicBool>,
) -> JoinSet<Result<()>> {
    let number = Arc::new(AtomicUsize::new(0));
    let backlog = load.backlog;
    let later_pause =
        load.later_per_second.map(|imports| Duration::from_secs(load.connections as u64) / imports);
    let mut importing = JoinSet::new();
    for _ in 0..load.connections {
        let (api, tickets, is_over) = (api.clone(), tickets.clone(), is_over.clone());
        let number = number.clone();
        importing.spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                let number = number.fetch_add(1, Ordering::Relaxed);
                if let Some(pause) = later_pause.filter(|_| number >= backlog) {
                    sleep(pause).await;
                }
                let ticket = import(&api, &format!("large-{number}")).await?;
                tickets.locked().push(ticket);
            }
            Ok(())
        });
    }
    importing
}

/// The sorted times from each 202 to its evaluation.
async fn import_and_wait(api: &Api) -> Result<Vec<Duration>> {
    let mut ticks = interval(Duration::from_secs(1) / SMALL_PER_SECOND);
    let mut waiting = JoinSet::new();
    let began = Instant::now();
    for number in 0.. {
        if began.elapsed() >= SMALL_TIME {
            break;
        }
        ticks.tick().await;
        waiting.spawn(import_and_wait_for_evaluation(api.clone(), number));
    }
    let mut times = results_of(waiting).await?;
    times.sort_unstable();
    Ok(times)
}

async fn results_of<T: 'static>(mut tasks: JoinSet<Result<T>>) -> Result<Vec<T>> {
    let mut results = Vec::new();
    while let Some(result) = tasks.join_next().await {
        results.push(result??);
    }
    Ok(results)
}

/// The time from the 202 to the evaluation.
async fn import_and_wait_for_evaluation(api: Api, number: usize) -> Result<Duration> {
    let ticket = import(&api, &format!("small-{number}")).await?;
    let accepted = Instant::now();
    while status(&api, &ticket).await? == "pending" {
        ensure!(accepted.elapsed() < WAIT_LIMIT, "small-{number} is not evaluated");
        sleep(POLL).await;
    }
    Ok(accepted.elapsed())
}

/// Number of evaluated tickets, found by binary search; approximate, because evaluation only roughly follows the order of
/// acceptance.
async fn evaluated(api: &Api, tickets: &Tickets) -> Result<usize> {
    let tickets = tickets.locked().clone();
    let (mut done, mut pending) = (0, tickets.len());
    while done < pending {
        let middle = done + (pending - done) / 2;
        match status(api, &tickets[middle]).await?.as_str() {
            "pending" => pending = middle,
            _ => done = middle + 1,
        }
    }
    Ok(done)
}

/// Imports a conversation. A full queue is not an error: the client tries again.
async fn import(api: &Api, id: &str) -> Result<String> {
    let began = Instant::now();
    loop {
        let answer = api.post("/v1/assess", &long_conversation(id)).await?;
        if answer.status != 503 {
            return text(&answer.expect(202)?, "id");
        }
        ensure!(began.elapsed() < WAIT_LIMIT, "no room for {id}");
        sleep(POLL).await;
    }
}

/// A long conversation with an AI agent: the model of the scorer reads it, which takes longer than to import it.
fn long_conversation(id: &str) -> Value {
    let authors =
        [json!({"type": "contact", "external_id": "ann"}), json!({"type": "ai", "external_id": "bot"})];
    let messages =
        (0..MESSAGES).map(|number| message(number, &authors[number % 2], &format!("{number}: {TEXT}")));
    edited(conversation(id), &[set("/messages", messages.collect::<Vec<_>>())])
}

async fn status(api: &Api, ticket: &str) -> Result<String> {
    text(&api.get(&format!("/v1/tickets/{ticket}/evaluation")).await?.expect(200)?, "status")
}
