//! A flood: thousands of idle connections, slow heads and bodies, concurrent large bodies. At least half of the imports of a
//! well-behaved client are still accepted, the others are answered 503, memory stays bounded, and the service recovers.

#![allow(clippy::print_stderr, reason = "prints measured figures")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_platform::runtime::LockExt as _;
use futures_util::future::join_all;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::harness::{PrivateStack, Stack, conversation, edited, set};

/// Limit of a request of the well-behaved client, and of connecting for a large body.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Interval between the starts of two imports of the well-behaved client.
const IMPORT_INTERVAL: Duration = Duration::from_millis(100);
/// Files that a process needs beside the connections of the flood.
const OTHER_FILES: usize = 1_000;
/// Content of a large body.
const LARGE: usize = 1024 * 1024;

/// The beginning of a head that does not end.
const SLOW_HEAD: &str =
    "GET /v1/evaluations/exports HTTP/1.1\r\nHost: assay\r\nAccept: */*\r\nUser-Agent: a slow one\r\n";

struct Flood {
    idle: usize,
    slow_heads: usize,
    slow_bodies: usize,
    large_bodies: usize,
    /// How long at least.
    time: Duration,
}

/// Counts of responses by status, or by kind of failure.
type Answers = Arc<Mutex<BTreeMap<String, usize>>>;

/// The short form, in every test run: a tenth of the load.
pub async fn small(stack: &mut PrivateStack) -> Result<()> {
    let time = Duration::from_secs(5);
    flood(stack, Flood { idle: 1_000, slow_heads: 50, slow_bodies: 50, large_bodies: 200, time }).await
}

/// `make flood`.
pub async fn full(stack: &mut PrivateStack) -> Result<()> {
    let time = Duration::from_secs(40);
    flood(stack, Flood { idle: 10_000, slow_heads: 500, slow_bodies: 500, large_bodies: 2_000, time }).await
}

async fn flood(stack: &mut PrivateStack, mut flood: Flood) -> Result<()> {
    flood.idle = flood.idle.min(raise_file_limit(&flood)?);
    // The product's default: the test harness shortens it to 3 s.
    stack.start_with(&[("ASSAY_GATEWAY__BODY_DEADLINE_SECONDS", "30")]).await?;
    stack.api()?.post("/v1/assess", &conversation("before")).await?.expect_status(202)?;

    let is_over = Arc::new(AtomicBool::new(false));
    let mut trickling = JoinSet::new();
    let began = Instant::now();
    let idle = open_idle(stack, flood.idle).await?;
    let (heads, bodies) = (Answers::default(), Answers::default());
    // A complete head, then a body that would take days.
    let slow_body = head(stack.key(), LARGE);
    for (request, count, answers) in
        [(SLOW_HEAD, flood.slow_heads, &heads), (&slow_body, flood.slow_bodies, &bodies)]
    {
        for number in 0..count {
            let (address, request) = (host_and_port(stack), request.as_bytes().to_vec());
            trickling.spawn(trickle(address, request, answers.clone(), is_over.clone(), number));
        }
    }
    let mut good = JoinSet::new();
    good.spawn(well_behaved_client(stack.api()?, is_over.clone()));
    let large = Answers::default();
    let numbers = 0..flood.large_bodies;
    join_all(numbers.map(|number| send_large(stack, number, large.clone()))).await;
    sleep(flood.time.saturating_sub(began.elapsed())).await;
    is_over.store(true, Ordering::Relaxed);
    let good = good.join_next().await.context("the well-behaved client is gone")???;
    let began_after = Instant::now();
    stack.api()?.post("/v1/assess", &conversation("after")).await?.expect_status(202)?;
    let after = began_after.elapsed();
    trickling.shutdown().await;
    drop(idle);

    let (kind, time) = (stack.kind(), began.elapsed());
    let Flood { idle, slow_heads, slow_bodies, large_bodies, .. } = flood;
    eprintln!("flood of {kind:?}, {time:?}: {idle} idle connections");
    eprintln!("  {slow_heads} slow heads (1 byte/s, begun again when refused): {:?}", heads.locked());
    eprintln!("  {slow_bodies} slow bodies (1 byte/s, begun again when refused): {:?}", bodies.locked());
    eprintln!("  {large_bodies} bodies of 1 MB at once: {:?}", large.locked());
    eprintln!("  well-behaved: {good}; the first import afterwards: 202 after {after:?}");
    stack.check_memory_limits("flood")
}

/// Raises the limit of open files; returns how many idle connections fit under it, and prints that when they are too few.
fn raise_file_limit(flood: &Flood) -> Result<usize> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    let others = flood.slow_heads + flood.slow_bodies + flood.large_bodies + OTHER_FILES;
    let room = usize::try_from(most).unwrap_or(usize::MAX).saturating_sub(others);
    if room < flood.idle {
        eprintln!("only {room} of {} idle connections: {most} files may be open (ulimit -Hn)", flood.idle);
    }
    Ok(room)
}

fn host_and_port(stack: &Stack) -> String {
    stack.base_url().trim_start_matches("http://").to_owned()
}

/// Idle keep-alive connections after one request.
async fn open_idle(stack: &Stack, count: usize) -> Result<Vec<TcpStream>> {
    let address = host_and_port(stack);
    let mut connections = Vec::with_capacity(count);
    for _ in 0..count.div_ceil(200) {
        let opened = join_all((0..200.min(count - connections.len())).map(|_| async {
            let mut connection = TcpStream::connect(&address).await?;
            connection.write_all(b"GET /healthz HTTP/1.1\r\nHost: assay\r\n\r\n").await?;
            let mut answer = [0; 1024];
            ensure!(connection.read(&mut answer).await? > 0, "closed at once");
            anyhow::Ok(connection)
        }));
        connections.extend(opened.await.into_iter().collect::<Result<Vec<_>>>()?);
    }
    Ok(connections)
}

fn head(key: &str, length: usize) -> String {
    format!(
        "POST /v1/assess HTTP/1.1\r\nHost: assay\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )
}

/// Sends one byte per second until there is an answer, then starts again, until the flood is over. A complete head is
/// sent at once.
async fn trickle(
    address: String,
    request: Vec<u8>,
    answers: Answers,
    is_over: Arc<AtomicBool>,
    number: usize,
) {
    let has_whole_head = request.ends_with(b"\r\n\r\n");
    // Spreads the connections over a second.
    sleep(Duration::from_millis(u64::try_from(number % 100).unwrap_or_default() * 10)).await;
    while !is_over.load(Ordering::Relaxed) {
        let Ok(mut connection) = TcpStream::connect(&address).await else {
            count(&answers, "not connected");
            sleep(Duration::from_secs(1)).await;
            continue;
        };
        let mut rest = request.iter().copied().chain(std::iter::repeat(b' '));
        if has_whole_head {
            let at_once: Vec<u8> = rest.by_ref().take(request.len()).collect();
            let _ = connection.write_all(&at_once).await;
        }
        let mut answer = Vec::with_capacity(1024);
        for byte in rest {
            if connection.write_all(&[byte]).await.is_err() {
                break;
            }
            if timeout(Duration::from_secs(1), connection.read_buf(&mut answer)).await.is_ok() {
                break;
            }
            if is_over.load(Ordering::Relaxed) {
                count(&answers, "still sending");
                return;
            }
        }
        count(&answers, status_of(&answer));
    }
}

/// A valid conversation of about a megabyte.
async fn send_large(stack: &Stack, number: usize, answers: Answers) {
    let body = edited(conversation(&format!("large-{number}")), &[set("/messages/0/content", "CONTENT")]);
    let text = body.to_string();
    let Some((before, after)) = text.split_once("CONTENT") else { return count(&answers, "no body") };
    let length = before.len() + LARGE + after.len();
    let opened = timeout(TIMEOUT, TcpStream::connect(host_and_port(stack))).await;
    let Ok(Ok(connection)) = opened else { return count(&answers, "not connected") };
    let (mut reader, mut writer) = connection.into_split();
    let filler = "lorem ipsum ".repeat(LARGE / 12 + 1);
    let head = head(stack.key(), length);
    let sending = async {
        for part in [&head, before, &filler[..LARGE], after] {
            // The gateway may refuse the request before the end of its body.
            if writer.write_all(part.as_bytes()).await.is_err() {
                break;
            }
        }
        // Never ends: the answer ends the `select!`.
        std::future::pending::<()>().await;
    };
    let mut answer = Vec::with_capacity(1024);
    let answered = async {
        tokio::select! {
            () = sending => {}
            _ = reader.read_buf(&mut answer) => {}
        }
    };
    match timeout(Duration::from_secs(60), answered).await {
        Ok(()) => count(&answers, status_of(&answer)),
        Err(_) => count(&answers, "no answer"),
    }
}

/// Starts an import every 100 ms, whether or not the earlier ones were answered; returns status counts and latency percentiles.
///
/// # Errors
/// When an import is not answered in time, or is answered neither 202 nor 503, or when less than half of the answers are 202.
async fn well_behaved_client(api: crate::harness::Api, is_over: Arc<AtomicBool>) -> Result<String> {
    let mut requests = JoinSet::new();
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        let api = api.clone();
        requests.spawn(async move {
            let began = Instant::now();
            let body = conversation(&format!("good-{number}"));
            let request = api.request(Method::POST, "/v1/assess").json(&body).timeout(TIMEOUT);
            let answer = api.reply(request).await.context("the well-behaved client was not answered")?;
            if answer.status != 202 {
                answer.problem(503, "unavailable")?;
                ensure!(!answer.header("retry-after").is_empty(), "{answer:?}");
            }
            anyhow::Ok((answer.status, began.elapsed()))
        });
        number += 1;
        sleep(IMPORT_INTERVAL).await;
    }
    let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
    let mut times = Vec::new();
    while let Some(answer) = requests.join_next().await {
        let (status, time) = answer??;
        *statuses.entry(status).or_default() += 1;
        times.push(time);
    }
    let accepted = statuses.get(&202).copied().unwrap_or_default();
    ensure!(
        2 * accepted >= times.len(),
        "of the well-behaved client too few imports are accepted: {statuses:?}"
    );
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    Ok(format!("{statuses:?}, p50 {:?}, p99 {:?}", at(50), at(99)))
}

fn status_of(answer: &[u8]) -> &str {
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    std::str::from_utf8(line).ok().and_then(|line| line.split(' ').nth(1)).unwrap_or("closed")
}

fn count(answers: &Answers, answer: &str) {
    *answers.locked().entry(answer.to_owned()).or_default() += 1;
}
