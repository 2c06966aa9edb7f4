//! PostgreSQL dies, freezes and comes back, and the bus is away: what is answered meanwhile, how soon, and how soon all is
//! well again without a restart. The database is a server of the test's own, whose processes get real signals.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use assay_contracts::event::{ConversationAccepted, Event as _};
use assay_ingest::{Config, SCHEMA, migrate};
use assay_messaging::{Delivery, Handler, Outcome, Subscription};
use assay_testkit::process::Signal;
use assay_testkit::proxy::Proxy;
use assay_testkit::{
    Location, PostgresOptions, PrivatePostgres, ServiceDatabase, eventually, on_both_databases,
};
use async_trait::async_trait;
use futures_util::future::{join_all, try_join, try_join_all};
use reqwest::Response;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::stage::{Stage, config, conversation};

/// Generous: the machine may be busy. What was measured is printed.
const AT_ONCE: Duration = Duration::from_secs(3);
/// Requests at the same time, many more than there are connections.
const REQUESTS: usize = 60;

/// A stage on a PostgreSQL of its own, behind a proxy because a server that is started again has another port.
struct Outage {
    stage: Stage,
    server: PrivatePostgres,
    proxy: Proxy,
    folder: TempDir,
}

impl Outage {
    async fn prepare(change: impl FnOnce(&mut Config)) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let server = start(&folder).await?;
        let place = ServiceDatabase::empty_sqlite(SCHEMA)?;
        let mut config = config(&place)?;
        let proxy = Proxy::to(format!("127.0.0.1:{}", server.port())).await?;
        let url = server.url().replace(&server.port().to_string(), &proxy.address().port().to_string());
        config.database_url = url.into();
        change(&mut config);
        migrate(&config).await?;
        let stage = Stage::run(config, place)?;
        let outage = Self { stage, server, proxy, folder };
        outage.is_well("before").await?;
        Ok(outage)
    }

    /// Waits until an import is accepted; answers how long it took.
    async fn is_well(&self, ticket: &str) -> Result<Duration> {
        let began = Instant::now();
        let is_accepted = || async {
            // An import that was answered too late is a duplicate the next time.
            Ok([202, 409].contains(&self.stage.submit(&conversation(ticket)).await?.status().as_u16()))
        };
        eventually("an import to be accepted", is_accepted).await?;
        Ok(began.elapsed())
    }

    async fn is_refused(&self, ticket: String) -> Result<()> {
        expect_unavailable(self.stage.submit(&conversation(&ticket)).await?).await
    }

    /// Imports and tickets at once, all of them refused; answers how long the slowest took.
    async fn all_are_refused(&self, wave: &str) -> Result<Duration> {
        let began = Instant::now();
        let unknown = uuid::Uuid::now_v7().to_string();
        let imports = try_join_all((0..REQUESTS).map(|n| self.is_refused(format!("{wave}-{n}"))));
        let tickets = try_join_all(
            (0..REQUESTS).map(|_| async { expect_unavailable(self.stage.ticket(&unknown).await?).await }),
        );
        try_join(imports, tickets).await?;
        Ok(began.elapsed())
    }

    async fn is_alive(&self) -> Result<Duration> {
        let began = Instant::now();
        let answer = self.stage.http.get(format!("{}/healthz", self.stage.address)).send().await?;
        anyhow::ensure!(answer.status() == 200, "{answer:?}");
        Ok(began.elapsed())
    }
}

async fn start(folder: &TempDir) -> Result<PrivatePostgres> {
    let location = Location::Folder(folder.path().to_owned());
    let options = PostgresOptions { location, ..PostgresOptions::for_tests() };
    assay_platform::runtime::blocking(move || PrivatePostgres::start(&options)).await?
}

async fn expect_unavailable(answer: Response) -> Result<()> {
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let problem: Value = answer.json().await?;
    anyhow::ensure!(status == 503 && problem["code"] == "unavailable", "{status}: {problem}");
    anyhow::ensure!(headers.contains_key("retry-after"), "no Retry-After: {problem}");
    Ok(())
}

/// Threads of this process.
fn threads() -> Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_database_is_dead_requests_are_refused_within_a_second_and_served_when_it_is_back()
-> Result<()> {
    let Outage { stage, server, proxy, folder } = Outage::prepare(|_| ()).await?;
    assay_platform::runtime::blocking(move || server.kill()).await??;
    let began = Instant::now();
    expect_unavailable(stage.submit(&conversation("during")).await?).await?;
    let first = began.elapsed();
    let began = Instant::now();
    for answer in join_all((0..REQUESTS).map(|n| stage.submit_owned(format!("during-{n}")))).await {
        expect_unavailable(answer?).await?;
    }
    let others = began.elapsed();
    let server = start(&folder).await?;
    proxy.aim(format!("127.0.0.1:{}", server.port()));
    let outage = Outage { stage, server, proxy, folder };
    let back = outage.is_well("after").await?;
    eprintln!("dead: first 503 after {first:?}, {REQUESTS} more within {others:?}; back: 202 after {back:?}");
    assert!(first < AT_ONCE && others < AT_ONCE, "{first:?}, {others:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_database_is_frozen_requests_are_refused_in_time_and_no_threads_pile_up() -> Result<()> {
    let outage = Outage::prepare(|config| config.accept_deadline_milliseconds = 2_000).await?;
    // As many connections as there will be.
    join_all((0..REQUESTS).map(|n| outage.stage.submit_owned(format!("warm-{n}")))).await;
    let threads_before = threads()?;
    outage.server.signal_all(Signal::SIGSTOP)?;
    let waves = async {
        let first = outage.all_are_refused("first").await?;
        let threads_during = threads()?;
        // The calls that hang were given up: nobody waits for them any more.
        let second = outage.all_are_refused("second").await?;
        anyhow::Ok((first, threads_during.max(threads()?), second))
    };
    let pulse = async {
        let mut slowest = Duration::ZERO;
        for _ in 0..20 {
            slowest = slowest.max(outage.is_alive().await?);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(slowest)
    };
    let both = try_join(waves, pulse).await;
    outage.server.signal_all(Signal::SIGCONT)?;
    let ((first, threads_during, second), pulse) = both?;
    let back = outage.is_well("after").await?;
    let is_read =
        || async { Ok(outage.stage.ticket(&uuid::Uuid::now_v7().to_string()).await?.status() == 404) };
    eventually("tickets to be read", is_read).await?;
    eprintln!(
        "frozen: {} x 503 within {first:?}, then within {second:?}; /healthz within {pulse:?}; threads {threads_before} \
         -> {threads_during}; back: 202 after {back:?}",
        2 * REQUESTS
    );
    assert!(first < Duration::from_secs(12) && second < Duration::from_secs(12), "{first:?}, {second:?}");
    assert!(pulse < AT_ONCE, "{pulse:?}");
    // Calls that hang: those of the pool that was given up and of the next one, the relay's four settlements and their
    // second attempts, and who calls by the clock. None for each request.
    let (pool, settlements, others) = (usize::try_from(outage.stage.config.database_pool_size)?, 2 * 4, 8);
    let bound = threads_before + 2 * pool + settlements + others;
    assert!(threads_during <= bound && bound < REQUESTS, "{threads_before} -> {threads_during}");
    Ok(())
}

on_both_databases! { Stage {
    a_full_outbox_refuses_imports_on_every_replica_until_it_is_drained,
    an_old_event_in_the_outbox_refuses_imports_until_it_is_out,
} }

/// Takes every event.
struct Taker;

#[async_trait]
impl Handler for Taker {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        deliveries.iter().map(|_| Outcome::Done).collect()
    }
}

async fn a_full_outbox_refuses_imports_on_every_replica_until_it_is_drained(stage: Stage) -> Result<()> {
    const LIMIT: usize = 20;
    let mut stage = stage.restarted(|config| config.outbox_refusal_events = LIMIT as u64)?;
    let replica = stage.start_replica()?;
    let addresses = [stage.address.clone(), replica];
    let readiness = stage.readiness().await?;
    assert_eq!(readiness.0, 200, "{}", readiness.1);
    let mut accepted = 0;
    let refusal = 'full: loop {
        for address in &addresses {
            let body = conversation(&format!("T-{accepted}")).to_string();
            let answer = stage.submit_to(address, stage.organization, None, body).await?;
            match answer.status().as_u16() {
                202 => accepted += 1,
                _ => break 'full answer,
            }
        }
    };
    let retry_after = refusal.headers().get("retry-after").cloned();
    expect_unavailable(refusal).await?;
    assert_eq!(retry_after.context("no Retry-After")?, "10");
    // Each replica counts its own until it sees those of the others, a second later.
    assert!((LIMIT..=2 * LIMIT).contains(&accepted), "{accepted} accepted");
    let is_degraded = || async {
        let (status, report) = stage.readiness().await?;
        anyhow::ensure!(status == 200, "{status} {report}");
        Ok(report["checks"]["ingest outbox limit"] == "degraded")
    };
    eventually("the replica to be degraded", is_degraded).await?;
    // What does not add to the outbox is answered.
    assert_eq!(stage.ticket(&uuid::Uuid::now_v7().to_string()).await?.status(), 404);

    let stop = CancellationToken::new();
    let consumer = consume(&stage, stop.clone());
    let is_accepted = async {
        for address in &addresses {
            let is_accepted = || async {
                let body = conversation(&format!("after-{address}")).to_string();
                let answer = stage.submit_to(address, stage.organization, None, body).await?;
                Ok([202, 409].contains(&answer.status().as_u16()))
            };
            eventually("an import to be accepted", is_accepted).await?;
        }
        stop.cancel();
        anyhow::Ok(())
    };
    try_join(consumer, is_accepted).await.map(drop)
}

async fn an_old_event_in_the_outbox_refuses_imports_until_it_is_out(stage: Stage) -> Result<()> {
    let stage = stage.restarted(|config| {
        config.outbox_age_limit_seconds = 0;
        config.outbox_refusal_age_seconds = 2;
    })?;
    stage.accepted(&conversation("first")).await?;
    let is_degraded = || async {
        let (status, report) = stage.readiness().await?;
        Ok(status == 200 && report["status"] == "degraded" && report["checks"]["ingest outbox"] == "degraded")
    };
    eventually("an event that waits to be shown", is_degraded).await?;
    let number = std::sync::atomic::AtomicUsize::new(0);
    let is_refused = || async {
        let number = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(stage.submit(&conversation(&format!("T-{number}"))).await?.status() == 503)
    };
    eventually("imports to be refused", is_refused).await?;
    let stop = CancellationToken::new();
    let consumer = consume(&stage, stop.clone());
    let is_accepted = async {
        eventually("imports to be accepted", || async {
            Ok([202, 409].contains(&stage.submit(&conversation("after")).await?.status().as_u16()))
        })
        .await?;
        stop.cancel();
        anyhow::Ok(())
    };
    try_join(consumer, is_accepted).await.map(drop)
}

async fn consume(stage: &Stage, stop: CancellationToken) -> Result<()> {
    let subscription = Subscription {
        queue: "test.conversation-accepted",
        topics: &[ConversationAccepted::TOPIC],
        max_batch: 16,
        max_in_flight: 64,
    };
    let consumed = stage.bus.consume(subscription, std::sync::Arc::new(Taker), stop).await;
    consumed.map_err(|error| anyhow::anyhow!(error))
}
