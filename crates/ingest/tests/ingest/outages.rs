//! Outages of PostgreSQL (killed, frozen, restarted) and a bus without consumers: responses, latency, and recovery without a
//! restart of the role. PostgreSQL is a private server whose processes get real signals.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use assay_contracts::event::{ConversationAccepted, Event as _};
use assay_contracts::ids::OrganizationId;
use assay_ingest::{Config, SCHEMA, migrate};
use assay_messaging::Subscription;
use assay_platform::runtime::new_id;
use assay_testkit::process::Signal;
use assay_testkit::proxy::Proxy;
use assay_testkit::{
    Location, PostgresOptions, PrivatePostgres, ServiceDatabase, eventually, on_both_databases,
};
use futures_util::future::{join_all, try_join, try_join_all};
use reqwest::Response;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::events::Received;
use crate::test_app::{TestApp, config, conversation};

/// Maximum time of a response during an outage; long, because the machine may be busy. The measured times are printed.
const MAX_RESPONSE_TIME: Duration = Duration::from_secs(3);
/// Concurrent requests, many more than connections.
const REQUESTS: usize = 60;

/// An app on a private PostgreSQL, behind a proxy, because a restarted server has another port.
struct Outage {
    app: TestApp,
    server: PrivatePostgres,
    proxy: Proxy,
    folder: TempDir,
}

impl Outage {
    async fn prepare(change: impl FnOnce(&mut Config)) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let server = start(&folder).await?;
        let service_database = ServiceDatabase::empty_sqlite(SCHEMA)?;
        let mut config = config(&service_database)?;
        let proxy = Proxy::to(format!("127.0.0.1:{}", server.port())).await?;
        let url = server.url().replace(&server.port().to_string(), &proxy.address().port().to_string());
        config.database_url = url.into();
        change(&mut config);
        migrate(&config).await?;
        let app = TestApp::run(config, service_database)?;
        let outage = Self { app, server, proxy, folder };
        outage.wait_until_recovered("before").await?;
        Ok(outage)
    }

    /// Waits until an import is accepted; returns the time it took.
    async fn wait_until_recovered(&self, ticket: &str) -> Result<Duration> {
        let began = Instant::now();
        eventually("an import to be accepted", || self.app.is_accepted(ticket)).await?;
        Ok(began.elapsed())
    }

    async fn expect_refusal(&self, ticket: String) -> Result<()> {
        expect_unavailable(self.app.submit(&conversation(&ticket)).await?).await
    }

    /// Sends imports and ticket reads concurrently, expects all to be refused; returns the time of the slowest.
    async fn expect_all_refused(&self, wave: &str) -> Result<Duration> {
        let began = Instant::now();
        let unknown = uuid::Uuid::now_v7().to_string();
        let imports = try_join_all((0..REQUESTS).map(|n| self.expect_refusal(format!("{wave}-{n}"))));
        let tickets = try_join_all(
            (0..REQUESTS).map(|_| async { expect_unavailable(self.app.ticket(&unknown).await?).await }),
        );
        try_join(imports, tickets).await?;
        Ok(began.elapsed())
    }

    /// Expects `/healthz` to answer 200; returns the time it took.
    async fn check_liveness(&self) -> Result<Duration> {
        let began = Instant::now();
        let answer = self.app.http.get(format!("{}/healthz", self.app.address)).send().await?;
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

/// Number of threads of this process.
fn count_threads() -> Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_database_refuses_requests_at_once_and_recovers() -> Result<()> {
    let Outage { app, server, proxy, folder } = Outage::prepare(|_| ()).await?;
    assay_platform::runtime::blocking(move || server.kill()).await??;
    let began = Instant::now();
    expect_unavailable(app.submit(&conversation("during")).await?).await?;
    let first = began.elapsed();
    let began = Instant::now();
    for answer in join_all((0..REQUESTS).map(|n| app.submit_ticket(format!("during-{n}")))).await {
        expect_unavailable(answer?).await?;
    }
    let others = began.elapsed();
    let server = start(&folder).await?;
    proxy.set_target(format!("127.0.0.1:{}", server.port()));
    let outage = Outage { app, server, proxy, folder };
    let recovered_after = outage.wait_until_recovered("after").await?;
    eprintln!(
        "dead: first 503 after {first:?}, {REQUESTS} more within {others:?}; back: 202 after {recovered_after:?}"
    );
    assert!(first < MAX_RESPONSE_TIME && others < MAX_RESPONSE_TIME, "{first:?}, {others:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn frozen_database_refuses_requests_without_piling_up_threads() -> Result<()> {
    let outage = Outage::prepare(|config| config.accept_deadline_milliseconds = 2_000).await?;
    // Opens all connections of the pool.
    join_all((0..REQUESTS).map(|n| outage.app.submit_ticket(format!("warm-{n}")))).await;
    let threads_before = count_threads()?;
    outage.server.signal_all(Signal::SIGSTOP)?;
    let waves = async {
        let first = outage.expect_all_refused("first").await?;
        let threads_during = count_threads()?;
        // The database calls of the first wave have timed out.
        let second = outage.expect_all_refused("second").await?;
        anyhow::Ok((first, threads_during.max(count_threads()?), second))
    };
    let liveness = async {
        let mut slowest = Duration::ZERO;
        for _ in 0..20 {
            slowest = slowest.max(outage.check_liveness().await?);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(slowest)
    };
    let both = try_join(waves, liveness).await;
    outage.server.signal_all(Signal::SIGCONT)?;
    let ((first, threads_during, second), slowest_liveness) = both?;
    let recovered_after = outage.wait_until_recovered("after").await?;
    let is_read =
        || async { Ok(outage.app.ticket(&uuid::Uuid::now_v7().to_string()).await?.status() == 404) };
    eventually("tickets to be read", is_read).await?;
    eprintln!(
        "frozen: {} x 503 within {first:?}, then within {second:?}; /healthz within {slowest_liveness:?}; \
         threads {threads_before} -> {threads_during}; back: 202 after {recovered_after:?}",
        2 * REQUESTS
    );
    assert!(first < Duration::from_secs(12) && second < Duration::from_secs(12), "{first:?}, {second:?}");
    assert!(slowest_liveness < MAX_RESPONSE_TIME, "{slowest_liveness:?}");
    // Hanging calls: those of the abandoned pool and of its replacement, the relay's four result writes and their second
    // attempts, and periodic tasks; none per request.
    let (pool, result_writes, periodic) = (usize::try_from(outage.app.config.database_pool_size)?, 2 * 4, 8);
    let bound = threads_before + 2 * pool + result_writes + periodic;
    assert!(threads_during <= bound && bound < REQUESTS, "{threads_before} -> {threads_during}");
    Ok(())
}

on_both_databases! { TestApp {
    full_outbox_refuses_imports_on_every_replica_until_drained,
    organization_with_half_of_the_outbox_is_refused_alone,
    old_outbox_event_refuses_imports_until_published,
} }

async fn full_outbox_refuses_imports_on_every_replica_until_drained(app: TestApp) -> Result<()> {
    const LIMIT: usize = 20;
    let mut app = app.restarted(|config| config.outbox_refusal_events = LIMIT as u64)?;
    let replica = app.start_replica()?;
    let addresses = [app.address.clone(), replica];
    let readiness = app.readiness().await?;
    assert_eq!(readiness.0, 200, "{}", readiness.1);
    // Several, so that none of them reaches the limit for one organization.
    let organizations: [OrganizationId; 5] = std::array::from_fn(|_| new_id());
    let mut accepted = 0;
    let refusal = 'full: loop {
        for address in &addresses {
            let body = conversation(&format!("T-{accepted}")).to_string();
            let organization = organizations[accepted % organizations.len()];
            let answer = app.submit_to(address, organization, None, body).await?;
            match answer.status().as_u16() {
                202 => accepted += 1,
                _ => break 'full answer,
            }
        }
    };
    let retry_after = refusal.headers().get("retry-after").cloned();
    expect_unavailable(refusal).await?;
    assert_eq!(retry_after.context("no Retry-After")?, "10");
    // Each replica counts its own events until it reads the shared count, a second later.
    assert!((LIMIT..=2 * LIMIT).contains(&accepted), "{accepted} accepted");
    let is_degraded = || async {
        let (status, report) = app.readiness().await?;
        anyhow::ensure!(status == 200, "{status} {report}");
        Ok(report["checks"]["ingest outbox limit"] == "degraded")
    };
    eventually("the replica to be degraded", is_degraded).await?;
    // Requests that do not add to the outbox are served.
    assert_eq!(app.ticket(&uuid::Uuid::now_v7().to_string()).await?.status(), 404);

    let are_accepted = async {
        for address in &addresses {
            let is_accepted = || async {
                let body = conversation(&format!("after-{address}")).to_string();
                let answer = app.submit_to(address, app.organization, None, body).await?;
                Ok([202, 409].contains(&answer.status().as_u16()))
            };
            eventually("an import to be accepted", is_accepted).await?;
        }
        Ok(())
    };
    while_consumed(&app, are_accepted).await
}

async fn organization_with_half_of_the_outbox_is_refused_alone(app: TestApp) -> Result<()> {
    const LIMIT: usize = 20;
    let app = app.restarted(|config| config.outbox_refusal_events = LIMIT as u64)?;
    for number in 0..LIMIT / 2 {
        app.import(&conversation(&format!("T-{number}"))).await?;
    }
    // A duplicate adds no event, and is refused like any other import.
    let repeated = || async { anyhow::Ok(app.submit(&conversation("T-0")).await?.status().as_u16()) };
    eventually("a refusal", || async { Ok(repeated().await? == 503) }).await?;
    expect_unavailable(app.submit(&conversation("one more")).await?).await?;
    let other = app.submit_to(&app.address, new_id(), None, conversation("T-0").to_string()).await?;
    assert_eq!(other.status(), 202, "another organization has room");
    let (status, report) = app.readiness().await?;
    assert_eq!((status, &report["checks"]["ingest outbox limit"]), (200, &"ok".into()), "{report}");

    while_consumed(&app, eventually("room again", || async { Ok(repeated().await? == 409) })).await
}

async fn old_outbox_event_refuses_imports_until_published(app: TestApp) -> Result<()> {
    let app = app.restarted(|config| {
        config.outbox_age_limit_seconds = 0;
        config.outbox_refusal_age_seconds = 2;
    })?;
    app.import(&conversation("first")).await?;
    let is_degraded = || async {
        let (status, report) = app.readiness().await?;
        Ok(status == 200 && report["status"] == "degraded" && report["checks"]["ingest outbox"] == "degraded")
    };
    eventually("the readiness to be degraded", is_degraded).await?;
    let number = std::sync::atomic::AtomicUsize::new(0);
    let is_refused = || async {
        let number = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(app.submit(&conversation(&format!("T-{number}"))).await?.status() == 503)
    };
    eventually("imports to be refused", is_refused).await?;
    while_consumed(&app, eventually("imports to be accepted", || app.is_accepted("after"))).await
}

/// Does `work` while the events of imports are consumed.
async fn while_consumed(app: &TestApp, work: impl Future<Output = Result<()>>) -> Result<()> {
    let subscription = Subscription {
        queue: "test.conversation-accepted",
        topics: &[ConversationAccepted::TOPIC],
        max_batch: 16,
        max_in_flight: 64,
    };
    let (handler, stop) = (Received::<ConversationAccepted>::new(), CancellationToken::new());
    let consumer = app.bus.consume(subscription, handler, stop.clone());
    let work = async {
        let outcome = work.await;
        stop.cancel();
        outcome
    };
    tokio::join!(consumer, work).1
}
