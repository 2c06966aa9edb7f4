//! The distributed stack with nothing to do but accept: how many imports a second it takes is what other figures are
//! compared with.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::Result;

use crate::client::{Load, Outcome};
use crate::conversations::Conversations;
use crate::site::{Servers, Site};

/// Clients of the service. Each waits for its answer, as each of pgbench's does.
pub const CONNECTIONS: usize = 64;
const WARM_UP: Duration = Duration::from_secs(2);

/// A distributed stack whose scoring worker does not run.
pub struct Accepting {
    pub site: Site,
    pub load: Load,
}

impl Accepting {
    pub async fn start(servers: &Servers, conversations: &Arc<Conversations>, name: &str) -> Result<Self> {
        let mut site = Site::distributed(servers, name).await?;
        site.register_agents(&conversations.agents).await?;
        // What is compared is accepting: the limits evaluate nothing either.
        site.stop("scoring-worker")?;
        let load = imports_to(&site, conversations, name);
        load.as_fast_as_possible(WARM_UP).await?.only(202)?;
        Ok(Self { site, load })
    }

    /// As many imports as it takes, in so long.
    pub async fn maximum(&self, time: Duration) -> Result<Outcome> {
        self.load.as_fast_as_possible(time).await?.only(202)
    }
}

/// Imports through the public API; each has a ticket id that begins with `prefix`.
pub fn imports_to(site: &Site, conversations: &Arc<Conversations>, prefix: &str) -> Load {
    let key = site.key();
    Load {
        address: site.gateway().to_owned(),
        connections: CONNECTIONS,
        requests: conversations.imports("/v1/assess", prefix, move || key.to_owned()),
        next: Arc::new(AtomicU64::new(0)),
    }
}
