//! Faults of the environment: servers, disks and clocks.

use std::time::Duration;

use anyhow::{Context, Result};

use super::{Fault, FaultContext};

pub async fn server(fault: Fault, context: &mut FaultContext<'_>) -> Result<()> {
    let backends = context.cluster.backends.as_mut().context("the standalone has no servers")?;
    match fault {
        Fault::KillPostgres => backends.kill_postgres()?,
        Fault::RestartPostgres => backends.stop_postgres(),
        Fault::FreezePostgres => backends.freeze_postgres()?,
        Fault::KillRabbit => backends.kill_rabbit(),
        Fault::RestartRabbit => backends.stop_rabbit(),
        Fault::FreezeRabbit => backends.freeze_rabbit()?,
        _ => {}
    }
    context.hold(Duration::from_millis(500), Duration::from_secs(6)).await;
    Ok(())
}

pub async fn fill(fault: Fault, context: &mut FaultContext<'_>) -> Result<()> {
    let disk = if fault == Fault::FillObjectStore { &context.cluster.objects } else { &context.cluster.data };
    disk.fill()?;
    context.hold(Duration::from_secs(2), Duration::from_secs(5)).await;
    Ok(())
}

pub async fn step_clock(context: &mut FaultContext<'_>, role: &str, seconds: i64) -> Result<()> {
    context.cluster.step_clock(role, seconds)?;
    // The change takes effect after a second.
    context.hold(Duration::from_secs(3), Duration::from_secs(7)).await;
    context.cluster.step_clock(role, 0)
}
