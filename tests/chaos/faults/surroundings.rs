//! Servers, disks and clocks fail.

use std::time::Duration;

use anyhow::{Context, Result};

use super::{Fault, Stage};

pub async fn server(fault: Fault, stage: &mut Stage<'_>) -> Result<()> {
    let backends = stage.site.backends.as_mut().context("the standalone has no servers")?;
    match fault {
        Fault::KillPostgres => backends.kill_postgres()?,
        Fault::RestartPostgres => backends.stop_postgres(),
        Fault::FreezePostgres => backends.freeze_postgres()?,
        Fault::KillRabbit => backends.kill_rabbit(),
        Fault::RestartRabbit => backends.stop_rabbit(),
        Fault::FreezeRabbit => backends.freeze_rabbit()?,
        _ => {}
    }
    stage.hold(Duration::from_millis(500), Duration::from_secs(6)).await;
    Ok(())
}

pub async fn fill(fault: Fault, stage: &mut Stage<'_>) -> Result<()> {
    let disk = if fault == Fault::FillObjectStore { &stage.site.objects } else { &stage.site.data };
    disk.fill()?;
    stage.hold(Duration::from_secs(2), Duration::from_secs(5)).await;
    Ok(())
}

pub async fn step_clock(stage: &mut Stage<'_>, role: &str, seconds: i64) -> Result<()> {
    stage.site.step_clock(role, seconds)?;
    // It is noticed after a second.
    stage.hold(Duration::from_secs(3), Duration::from_secs(7)).await;
    stage.site.step_clock(role, 0)
}
