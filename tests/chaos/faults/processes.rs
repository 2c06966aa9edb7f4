//! Our own processes are killed, stopped, and told to go.

use std::time::Duration;

use anyhow::{Result, ensure};
use assay_testkit::process::Signal;
use assay_testkit::proxy::Weather;
use tokio::time::{Instant, sleep};

use super::Stage;
use crate::load;
use crate::site::To;

const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(4);

/// All processes, or those of a role, without a moment to say goodbye.
pub async fn kill(stage: &mut Stage<'_>, role: Option<&str>) -> Result<()> {
    stage.hold(Duration::ZERO, SHORT).await;
    let doomed = stage.site.instances.iter_mut();
    let doomed: Vec<_> = doomed.filter(|instance| role.is_none_or(|role| instance.role == role)).collect();
    doomed.iter().for_each(|instance| instance.signal(Signal::SIGKILL));
    doomed.into_iter().for_each(|instance| instance.kill());
    if role.is_some() {
        stage.hold(SHORT, LONG).await;
    }
    Ok(())
}

pub async fn kill_one(stage: &mut Stage<'_>, role: &str) -> Result<()> {
    let mut replicas = stage.site.of_role(role);
    let index = stage.dice.below(replicas.len());
    replicas[index].kill();
    stage.hold(SHORT, LONG).await;
    Ok(())
}

/// Longer than the lease of an export job.
pub async fn pause(stage: &mut Stage<'_>, role: &str) -> Result<()> {
    stage.site.of_role(role).iter().for_each(|instance| instance.signal(Signal::SIGSTOP));
    stage.hold(Duration::from_secs(1), Duration::from_secs(7)).await;
    stage.site.of_role(role).iter().for_each(|instance| instance.signal(Signal::SIGCONT));
    Ok(())
}

/// As an operator rolls out a new version: every process ends in order, and its successor is ready before the next goes.
pub async fn restart_one_by_one(stage: &mut Stage<'_>) -> Result<()> {
    for index in 0..stage.site.instances.len() {
        stage.site.instances[index].stop().await?;
        stage.site.start_missing()?;
        stage.site.await_ready().await?;
    }
    Ok(())
}

pub async fn stop_everything(stage: &mut Stage<'_>) -> Result<()> {
    let stopped = stage.site.instances.iter_mut().map(|instance| instance.stop());
    futures_util::future::try_join_all(stopped).await.map(drop)
}

/// The worker's database is slow, so that a file takes a while; the worker is killed when it has begun.
pub async fn kill_export_worker_mid_file(stage: &mut Stage<'_>) -> Result<()> {
    stage.site.links.set(("export-worker", To::Postgres), Weather::Slow(Duration::from_millis(150)));
    let known = stage.journal.told().exports.len();
    let key = format!("mid-file-{known}-{}", stage.dice.below(1 << 30));
    load::create_export(stage.client, stage.journal, "axis", &key).await;
    let exports = stage.journal.told().exports;
    ensure!(exports.len() > known, "no export was created");
    let path = format!("/v1/evaluations/exports/{}", exports[exports.len() - 1].id);
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        match stage.client.read(&path).await {
            Ok(export) if export["status"] == "pending" => {}
            Ok(_) => break,
            Err(answer) => stage.journal.other("export", &path, &answer),
        }
        sleep(Duration::from_millis(20)).await;
    }
    stage.hold(Duration::ZERO, SHORT).await;
    stage.site.of_role("export-worker").into_iter().for_each(|worker| worker.kill());
    Ok(())
}
