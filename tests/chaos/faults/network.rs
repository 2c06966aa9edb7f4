//! The network between the processes fails.

use std::time::Duration;

use anyhow::Result;
use assay_testkit::proxy::Weather;

use super::{Fault, Stage};
use crate::site::{Link, To};

const DELAY: Duration = Duration::from_millis(60);

pub async fn strike(fault: Fault, stage: &mut Stage<'_>) -> Result<()> {
    match fault {
        Fault::Cut(to) => stage.site.links.set_all(to, Weather::Cut),
        Fault::Slow(to) => stage.site.links.set_all(to, Weather::Slow(DELAY)),
        Fault::CutOne(to) => {
            let link = any(stage, to);
            stage.site.links.set(link, Weather::Cut);
        }
        Fault::FreezeOne(to) => {
            let link = any(stage, to);
            stage.site.links.set(link, Weather::Frozen);
        }
        _ => {}
    }
    stage.hold(Duration::from_millis(500), Duration::from_secs(6)).await;
    Ok(())
}

fn any(stage: &mut Stage<'_>, to: To) -> Link {
    let links: Vec<Link> = stage.site.links.all().into_iter().filter(|(_, way)| *way == to).collect();
    stage.dice.one_of(&links)
}
