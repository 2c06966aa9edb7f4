//! Faults of our own processes: killed, paused, stopped, restarted.

use std::time::Duration;

use anyhow::{Result, ensure};
use assay_testkit::process::Signal;
use assay_testkit::proxy::LinkState;
use tokio::time::{Instant, sleep};

use super::FaultContext;
use crate::cluster::{RECOVERY_LIMIT, Target};
use crate::load;

const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(4);

/// Kills all processes, or those of a role, at once.
pub async fn kill(context: &mut FaultContext<'_>, role: Option<&str>) -> Result<()> {
    context.hold(Duration::ZERO, SHORT).await;
    let victims = context.cluster.instances.iter_mut();
    let victims: Vec<_> =
        victims.filter(|instance| role.is_none_or(|role| instance.role() == role)).collect();
    victims.iter().for_each(|instance| instance.signal(Signal::SIGKILL));
    victims.into_iter().for_each(|instance| instance.kill());
    if role.is_some() {
        context.hold(SHORT, LONG).await;
    }
    Ok(())
}

pub async fn kill_one(context: &mut FaultContext<'_>, role: &str) -> Result<()> {
    let mut replicas = context.cluster.of_role(role);
    let index = context.rng.below(replicas.len());
    replicas[index].kill();
    context.hold(SHORT, LONG).await;
    Ok(())
}

/// Pauses a role for 1 to 7 s; the lease of an export job is 4 s.
pub async fn pause(context: &mut FaultContext<'_>, role: &str) -> Result<()> {
    context.cluster.of_role(role).iter().for_each(|instance| instance.signal(Signal::SIGSTOP));
    context.hold(Duration::from_secs(1), Duration::from_secs(7)).await;
    context.cluster.of_role(role).iter().for_each(|instance| instance.signal(Signal::SIGCONT));
    Ok(())
}

/// Rolling restart: each process stops in order, and its successor is ready before the next one stops.
pub async fn rolling_restart(context: &mut FaultContext<'_>) -> Result<()> {
    for index in 0..context.cluster.instances.len() {
        context.cluster.instances[index].stop(RECOVERY_LIMIT).await?;
        context.cluster.start_missing()?;
        context.cluster.await_ready().await?;
    }
    Ok(())
}

pub async fn stop_everything(context: &mut FaultContext<'_>) -> Result<()> {
    let stopped = context.cluster.instances.iter_mut().map(|instance| instance.stop(RECOVERY_LIMIT));
    futures_util::future::try_join_all(stopped).await.map(drop)
}

/// Slows down the worker's database link so that a file takes a while, and kills the worker in the middle.
pub async fn kill_export_worker_mid_file(context: &mut FaultContext<'_>) -> Result<()> {
    let link = ("export-worker", Target::Postgres);
    context.cluster.links.set(link, LinkState::Slow(Duration::from_millis(150)));
    let known = context.journal.observed().exports.len();
    let key = format!("mid-file-{known}-{}", context.rng.below(1 << 30));
    load::create_export(context.client, context.journal, "axis", &key).await;
    let exports = context.journal.observed().exports;
    ensure!(exports.len() > known, "no export was created");
    let path = format!("/v1/evaluations/exports/{}", exports[exports.len() - 1].id);
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        match context.client.read(&path).await {
            Ok(export) if export["status"] == "pending" => {}
            Ok(_) => break,
            Err(answer) => context.journal.record_answer("export", &path, &answer),
        }
        sleep(Duration::from_millis(20)).await;
    }
    context.hold(Duration::ZERO, SHORT).await;
    context.cluster.of_role("export-worker").into_iter().for_each(|worker| worker.kill());
    Ok(())
}
