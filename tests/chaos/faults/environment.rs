//! Faults of the environment: servers, disks and clocks.

use std::time::Duration;

use anyhow::{Context, Result};
use assay_testkit::SmallDisk;

use super::FaultContext;
use crate::cluster::{Backends, Cluster};

pub async fn disrupt_server(
    context: &mut FaultContext<'_>,
    disrupt: fn(&mut Backends) -> Result<()>,
) -> Result<()> {
    disrupt(context.cluster.backends.as_mut().context("the standalone has no servers")?)?;
    context.hold(Duration::from_millis(500), Duration::from_secs(6)).await;
    Ok(())
}

pub async fn fill_disk(context: &mut FaultContext<'_>, disk: fn(&Cluster) -> &SmallDisk) -> Result<()> {
    disk(context.cluster).fill()?;
    context.hold(Duration::from_secs(2), Duration::from_secs(5)).await;
    Ok(())
}

pub async fn step_clock(context: &mut FaultContext<'_>, role: &str, seconds: i64) -> Result<()> {
    context.cluster.step_clock(role, seconds)?;
    // The change takes effect after a second.
    context.hold(Duration::from_secs(3), Duration::from_secs(7)).await;
    context.cluster.step_clock(role, 0)
}
