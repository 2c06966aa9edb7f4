//! Faults of the network between processes.

use std::time::Duration;

use anyhow::Result;
use assay_testkit::proxy::LinkState;

use super::FaultContext;
use crate::cluster::{Link, Target};

pub const SLOW: LinkState = LinkState::Slow(Duration::from_millis(60));

/// Sets the state of all links to this kind of target for a while.
pub async fn set_all_links(context: &mut FaultContext<'_>, to: Target, state: LinkState) -> Result<()> {
    context.cluster.links.set_all(to, state);
    hold(context).await
}

/// Sets the state of a random link to this kind of target for a while.
pub async fn set_random_link(context: &mut FaultContext<'_>, to: Target, state: LinkState) -> Result<()> {
    let mut links: Vec<Link> = context.cluster.links.all();
    links.retain(|(_, target)| *target == to);
    context.cluster.links.set(context.rng.one_of(&links), state);
    hold(context).await
}

async fn hold(context: &mut FaultContext<'_>) -> Result<()> {
    context.hold(Duration::from_millis(500), Duration::from_secs(6)).await;
    Ok(())
}
