//! A load generator with minimal CPU use: one thread, pre-built requests, minimal parsing.
//!
//! A **closed loop** sends the next request when the last one is answered: it measures maximum throughput. An **open loop**
//! sends at a given rate regardless of earlier requests, and measures latency from the time each request was due: what
//! clients see, pauses of the service included.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use futures_util::future::try_join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{sleep_until, timeout, timeout_at};

/// Request timeout.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Writes the request with this number, head and body.
pub type Requests = Arc<dyn Fn(u64, &mut Vec<u8>) + Send + Sync>;

/// A load: target, number of connections and requests.
#[derive(Clone)]
pub struct Load {
    /// `HOST:PORT`.
    pub address: String,
    pub connections: usize,
    pub requests: Requests,
    /// Number of the next request; shared, so that a later load continues the sequence.
    pub next: Arc<AtomicU64>,
}

/// Results of a run.
#[derive(Default, Debug)]
pub struct Outcome {
    pub seconds: f64,
    /// Answers by status.
    pub answers: BTreeMap<u16, u64>,
    /// Latencies of all responses, in microseconds, sorted.
    micros: Vec<u32>,
    /// Bytes of the bodies of answers.
    pub body_bytes: u64,
}

impl Outcome {
    /// Responses with this status per second.
    pub fn per_second(&self, status: u16) -> f64 {
        *self.answers.get(&status).unwrap_or(&0) as f64 / self.seconds
    }

    pub fn count(&self) -> u64 {
        self.answers.values().sum()
    }

    /// Latency percentile in milliseconds.
    pub fn percentile_ms(&self, share: f64) -> f64 {
        let last = self.micros.len().saturating_sub(1);
        let index = ((self.micros.len() as f64 * share) as usize).min(last);
        self.micros.get(index).map_or(0.0, |micros| f64::from(*micros) / 1000.0)
    }

    /// Fails unless every response has this status: figures of errors mean nothing.
    pub fn only(self, status: u16) -> Result<Self> {
        ensure!(
            self.answers.keys().all(|answered| *answered == status) && self.count() > 0,
            "expected nothing but {status}: {:?}",
            self.answers
        );
        Ok(self)
    }
}

impl Load {
    pub fn new(address: &str, connections: usize, requests: Requests) -> Self {
        Self { address: address.to_owned(), connections, requests, next: Arc::default() }
    }

    /// Closed loop for this time.
    pub async fn closed_loop(&self, time: Duration) -> Result<Outcome> {
        let end = Instant::now() + time;
        self.run(None, move |_| (Instant::now() < end).then(Instant::now)).await
    }

    /// Closed loop for this time. Each request takes a permit, which the caller returns when the request has had its
    /// effect.
    pub async fn closed_loop_with_permits(&self, permits: Arc<Semaphore>, time: Duration) -> Result<Outcome> {
        let end = Instant::now() + time;
        let limit = PermitLimit { permits, end };
        self.run(Some(limit), move |_| (Instant::now() < end).then(Instant::now)).await
    }

    /// Closed loop with this number of requests.
    pub async fn closed_loop_count(&self, count: u64) -> Result<Outcome> {
        self.run(None, move |index| (index < count).then(Instant::now)).await
    }

    /// Open loop at this rate per second.
    pub async fn open_loop(&self, per_second: f64, time: Duration) -> Result<Outcome> {
        let begin = Instant::now();
        let count = (per_second * time.as_secs_f64()) as u64;
        self.run(None, move |index| {
            (index < count).then(|| begin + Duration::from_secs_f64(index as f64 / per_second))
        })
        .await
    }

    /// `due` returns when a request is due, or `None` to end the run.
    async fn run(
        &self,
        limit: Option<PermitLimit>,
        due: impl Fn(u64) -> Option<Instant> + Send + Sync + 'static,
    ) -> Result<Outcome> {
        let (load, due) = (self.clone(), Arc::new(due));
        let (sender, receiver) = tokio::sync::oneshot::channel();
        std::thread::Builder::new().name("load".to_owned()).spawn(move || {
            let outcome = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(anyhow::Error::from)
                .and_then(|runtime| runtime.block_on(load.run_on_this_thread(limit, due)));
            // The receiver may be gone.
            let _ = sender.send(outcome);
        })?;
        receiver.await.map_err(|_| anyhow!("the load generator panicked"))?
    }

    async fn run_on_this_thread<D: Fn(u64) -> Option<Instant>>(
        self,
        limit: Option<PermitLimit>,
        due: Arc<D>,
    ) -> Result<Outcome> {
        let connect = (0..self.connections).map(|_| Connection::open(&self.address));
        let connections = try_join_all(connect).await?;
        let begin = Instant::now();
        let schedule = Schedule { due: due.as_ref(), limit: limit.as_ref(), index: AtomicU64::new(0) };
        let parts = connections.into_iter().map(|connection| self.run_connection(connection, &schedule));
        let parts = try_join_all(parts).await?;
        let mut outcome = Outcome { seconds: begin.elapsed().as_secs_f64(), ..Outcome::default() };
        for part in parts {
            for (status, count) in part.answers {
                *outcome.answers.entry(status).or_default() += count;
            }
            outcome.micros.extend(part.micros);
            outcome.body_bytes += part.body_bytes;
        }
        outcome.micros.sort_unstable();
        Ok(outcome)
    }

    async fn run_connection<D: Fn(u64) -> Option<Instant>>(
        &self,
        mut connection: Connection,
        schedule: &Schedule<'_, D>,
    ) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let mut request = Vec::new();
        while let Some(due_at) = schedule.next().await {
            if due_at > Instant::now() {
                sleep_until(due_at.into()).await;
            }
            request.clear();
            (self.requests)(self.next.fetch_add(1, Ordering::Relaxed), &mut request);
            let answered = timeout(TIMEOUT, connection.send(&request)).await;
            let (status, bytes) = answered.context("a request was never answered")??;
            *outcome.answers.entry(status).or_default() += 1;
            outcome.body_bytes += bytes as u64;
            outcome.micros.push(u32::try_from(due_at.elapsed().as_micros()).unwrap_or(u32::MAX));
        }
        Ok(outcome)
    }
}

/// Schedule of the requests of a run.
struct Schedule<'r, D> {
    due: &'r D,
    limit: Option<&'r PermitLimit>,
    index: AtomicU64,
}

/// Limit of requests without effect yet, and the deadline for waiting for a permit.
struct PermitLimit {
    permits: Arc<Semaphore>,
    end: Instant,
}

impl<D: Fn(u64) -> Option<Instant>> Schedule<'_, D> {
    /// When the next request is due; `None` at the end of the run.
    async fn next(&self) -> Option<Instant> {
        if let Some(limit) = self.limit {
            let permit = timeout_at(limit.end.into(), limit.permits.acquire()).await;
            permit.ok()?.ok()?.forget();
        }
        (self.due)(self.index.fetch_add(1, Ordering::Relaxed))
    }
}

/// A kept-alive HTTP/1.1 connection.
struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Connection {
    async fn open(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, received: Vec::with_capacity(16 * 1024) })
    }

    /// Sends a request; returns the status and the length of the body.
    async fn send(&mut self, request: &[u8]) -> Result<(u16, usize)> {
        self.stream.write_all(request).await?;
        self.received.clear();
        let head = loop {
            self.read().await?;
            if let Some(end) = self.received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end + 4;
            }
        };
        let (status, length) = read_head(&self.received[..head])?;
        while self.received.len() < head + length {
            self.read().await?;
        }
        Ok((status, length))
    }

    async fn read(&mut self) -> Result<()> {
        match self.stream.read_buf(&mut self.received).await? {
            0 => bail!("the connection was closed in the middle of an answer"),
            _ => Ok(()),
        }
    }
}

fn read_head(head: &[u8]) -> Result<(u16, usize)> {
    let text = std::str::from_utf8(head)?;
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let status = status.with_context(|| format!("no status: {text}"))?;
    let length = length.with_context(|| format!("no length: {text}"))?;
    Ok((status, length))
}

/// The head and body of a request.
pub fn write_request(buffer: &mut Vec<u8>, method: &str, path: &str, bearer: &str, body: Option<&[&[u8]]>) {
    buffer.extend_from_slice(method.as_bytes());
    buffer.push(b' ');
    buffer.extend_from_slice(path.as_bytes());
    buffer.extend_from_slice(b" HTTP/1.1\r\nhost: assay\r\nauthorization: Bearer ");
    buffer.extend_from_slice(bearer.as_bytes());
    if let Some(parts) = body {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        buffer.extend_from_slice(b"\r\ncontent-type: application/json\r\ncontent-length: ");
        buffer.extend_from_slice(length.to_string().as_bytes());
    }
    buffer.extend_from_slice(b"\r\n\r\n");
    for part in body.unwrap_or_default() {
        buffer.extend_from_slice(part);
    }
}
