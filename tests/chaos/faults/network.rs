//! Faults of the network between processes.

use std::time::Duration;

use anyhow::Result;
use assay_testkit::proxy::LinkState;

use super::FaultContext;
use crate::cluster::{Link, To};

pub const SLOW: LinkState = LinkState::Slow(Duration::from_millis(60));

/// Sets all links to this kind of target.
pub async fn all(context: &mut FaultContext<'_>, to: To, state: LinkState) -> Result<()> {
    context.cluster.links.set_all(to, state);
    hold(context).await
}

/// Sets a random link to this kind of target.
pub async fn one(context: &mut FaultContext<'_>, to: To, state: LinkState) -> Result<()> {
    let mut links: Vec<Link> = context.cluster.links.all();
    links.retain(|(_, target)| *target == to);
    context.cluster.links.set(context.rng.one_of(&links), state);
    hold(context).await
}

async fn hold(context: &mut FaultContext<'_>) -> Result<()> {
    context.hold(Duration::from_millis(500), Duration::from_secs(6)).await;
    Ok(())
}
