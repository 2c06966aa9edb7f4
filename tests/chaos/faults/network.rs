//! Faults of the network between processes.

use std::time::Duration;

use anyhow::Result;
use assay_testkit::proxy::LinkState;

use super::{Fault, FaultContext};
use crate::cluster::{Link, To};

const DELAY: Duration = Duration::from_millis(60);

pub async fn inject(fault: Fault, context: &mut FaultContext<'_>) -> Result<()> {
    match fault {
        Fault::Cut(to) => context.cluster.links.set_all(to, LinkState::Cut),
        Fault::Slow(to) => context.cluster.links.set_all(to, LinkState::Slow(DELAY)),
        Fault::CutOne(to) => {
            let link = random_link(context, to);
            context.cluster.links.set(link, LinkState::Cut);
        }
        Fault::FreezeOne(to) => {
            let link = random_link(context, to);
            context.cluster.links.set(link, LinkState::Frozen);
        }
        _ => {}
    }
    context.hold(Duration::from_millis(500), Duration::from_secs(6)).await;
    Ok(())
}

fn random_link(context: &mut FaultContext<'_>, to: To) -> Link {
    let links: Vec<Link> =
        context.cluster.links.all().into_iter().filter(|(_, target)| *target == to).collect();
    context.rng.one_of(&links)
}
