//! Graceful degradation during an outage of the broker or a service.

#![allow(clippy::print_stderr, reason = "prints measured figures")]

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_testkit::process::Signal;
use assay_testkit::proxy::Proxy;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::harness::{Api, PrivateStack, conversation, until};

/// Time limit of responses that do not depend on the outage.
const SOON: Duration = Duration::from_secs(3);

/// While RabbitMQ is down, imports are accepted and ingest stays ready; the imports are evaluated afterwards.
pub async fn broker_outage(stack: &mut PrivateStack) -> Result<()> {
    let url = stack.setting("ASSAY_BUS__URL").to_owned();
    let (before, rest) = url.split_once('@').context("no credentials")?;
    let (server, after) = rest.split_once('/').context("no virtual host")?;
    let proxy = Proxy::to(server).await?;
    let through_proxy = format!("{before}@{}/{after}", proxy.address());
    stack.start_with(&[("ASSAY_BUS__URL", &through_proxy)]).await?;
    let api = stack.api()?;
    api.evaluation(&api.import(&conversation("before")).await?).await?;

    proxy.cut();
    let mut tickets = Vec::new();
    for number in 0..50 {
        tickets.push(api.import(&conversation(&format!("during-{number}"))).await?);
    }
    api.register("during").await?;
    api.get("/v1/evaluations/exports").await?.expect_status(200)?;
    for role in ["ingest", "agent-registry", "export"] {
        let report = until(&format!("{role} to notice"), async || {
            let (status, report) = readiness(stack, role).await?;
            ensure!(status == 200, "{role}: {status} {report}");
            Ok((report["status"] == "degraded").then_some(report))
        })
        .await?;
        let is_bus = |(name, outcome): (&String, &Value)| name.ends_with(" bus") && outcome == "degraded";
        ensure!(report["checks"].as_object().is_some_and(|checks| checks.iter().any(is_bus)), "{report}");
    }
    for role in ["scoring-worker", "export-worker"] {
        until(&format!("{role} not to be ready"), async || {
            Ok((readiness(stack, role).await?.0 == 503).then_some(()))
        })
        .await?;
    }
    api.get("/readyz").await?.expect_status(200)?;

    proxy.heal();
    for ticket in &tickets {
        api.evaluation(ticket).await?;
    }
    until("everything to be ready", async || {
        let ready = join_all(
            ["ingest", "scoring-worker", "export", "gateway"].map(async |role| readiness(stack, role).await),
        );
        let ready = ready.await.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(ready.iter().all(|(status, report)| *status == 200 && report["status"] == "ready").then_some(()))
    })
    .await
}

/// A hanging service (it accepts connections and never responds) does not affect others, and its own requests soon fail
/// fast. It is used again when it recovers.
pub async fn service_hangs(stack: &mut PrivateStack) -> Result<()> {
    stack.start().await?;
    let api = stack.api()?;
    let ticket = api.import(&conversation("before")).await?;
    api.evaluation(&ticket).await?;
    stack.signal("ingest", Signal::SIGSTOP)?;
    let flood = async {
        let began = Instant::now();
        let answers = join_all((0..200).map(|number| {
            let api = api.clone();
            async move { api.post("/v1/assess", &conversation(&format!("during-{number}"))).await }
        }));
        for answer in answers.await {
            answer?.problem(503, "unavailable")?;
        }
        anyhow::Ok(began.elapsed())
    };
    let others = others_are_served(&api);
    let (flood_took, slowest_other) = futures_util::future::try_join(flood, others).await?;
    let refused_within = until("requests to be refused at once", async || {
        let began = Instant::now();
        let refused = api.post("/v1/assess", &conversation("open")).await?;
        refused.problem(503, "unavailable")?;
        ensure!(!refused.header("retry-after").is_empty(), "{refused:?}");
        let within = began.elapsed();
        Ok((within < Duration::from_millis(500)).then_some(within))
    })
    .await?;
    let (status, report) = readiness(stack, "gateway").await?;
    ensure!(status == 200 && report["checks"]["ingest"] == "degraded", "{status} {report}");

    stack.signal("ingest", Signal::SIGCONT)?;
    let back_after = until_accepted(&api).await?;
    eprintln!(
        "hanging ingest: 200 requests refused within {flood_took:?}, other routes within {slowest_other:?}, then refused within \
         {refused_within:?}; back: 202 after {back_after:?}"
    );
    Ok(())
}

/// Repeats requests to the other services for a while; returns the longest latency.
async fn others_are_served(api: &Api) -> Result<Duration> {
    let mut slowest = Duration::ZERO;
    for round in 0..20 {
        let began = Instant::now();
        api.get("/v1/evaluations/exports").await?.expect_status(200)?;
        slowest = slowest.max(began.elapsed());
        let began = Instant::now();
        let agent = json!({"external_id": format!("agent-{round}"), "name": "Agent"});
        api.post("/v1/agents", &agent).await?.expect_status(201)?;
        slowest = slowest.max(began.elapsed());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    ensure!(slowest < SOON, "the slowest took {slowest:?}");
    Ok(slowest)
}

/// Requests to a dead service fail fast; it is used again when it is back.
pub async fn service_dead(stack: &mut PrivateStack) -> Result<()> {
    stack.start().await?;
    let api = stack.api()?;
    api.import(&conversation("before")).await?;
    stack.kill(&["ingest"]);
    let began = Instant::now();
    api.post("/v1/assess", &conversation("during")).await?.problem(503, "unavailable")?;
    let refused = began.elapsed();
    ensure!(refused < SOON, "{refused:?}");
    others_are_served(&api).await?;
    stack.start().await?;
    until_accepted(&api).await?;
    eprintln!("dead ingest: 503 after {refused:?}");
    Ok(())
}

/// Waits until imports are accepted again; returns how long it took.
async fn until_accepted(api: &Api) -> Result<Duration> {
    let began = Instant::now();
    until("imports to be accepted", async || {
        let answer = api.post("/v1/assess", &conversation("after")).await?;
        Ok([202, 409].contains(&answer.status).then_some(began.elapsed()))
    })
    .await
}

async fn readiness(stack: &PrivateStack, role: &str) -> Result<(u16, Value)> {
    let api = Api::new(&format!("http://{}", stack.address(role)?), None)?;
    let reply = api.get("/readyz").await?;
    Ok((reply.status, serde_json::from_slice(&reply.body)?))
}
