//! A distributed stack that only accepts imports: the baseline for other figures.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use crate::client::{Load, Outcome};
use crate::cluster::{Cluster, KEY, Servers};
use crate::conversations::Conversations;

/// Connections to the service; each is a closed loop, as pgbench's are.
pub const CONNECTIONS: usize = 64;
const WARM_UP: Duration = Duration::from_secs(2);

/// A distributed stack without its scoring worker.
pub struct Accepting {
    pub cluster: Cluster,
    pub load: Load,
}

impl Accepting {
    pub async fn start(servers: &Servers, conversations: &Arc<Conversations>, name: &str) -> Result<Self> {
        let mut cluster = Cluster::distributed(servers, name).await?;
        cluster.register_agents(&conversations.agents).await?;
        // Only accepting is compared: the baselines do not evaluate either.
        cluster.stop("scoring-worker").await?;
        let load = imports_to(&cluster, conversations, name, CONNECTIONS);
        load.closed_loop(WARM_UP).await?.only(202)?;
        Ok(Self { cluster, load })
    }

    /// Maximum import throughput over this time.
    pub async fn maximum(&self, time: Duration) -> Result<Outcome> {
        self.load.closed_loop(time).await?.only(202)
    }
}

/// Imports through the public API; each has a ticket id that begins with `prefix`.
pub fn imports_to(
    cluster: &Cluster,
    conversations: &Arc<Conversations>,
    prefix: &str,
    connections: usize,
) -> Load {
    let requests = conversations.imports("/v1/assess", prefix, || KEY.to_owned());
    Load::new(cluster.gateway(), connections, requests)
}
