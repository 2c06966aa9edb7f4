//! The faults and their injection.

mod deliveries;
mod environment;
mod network;
mod processes;

use std::time::Duration;

use anyhow::Result;
use assay_testkit::Rng;
use assay_testkit::launcher::ROLES;
use assay_testkit::proxy::LinkState;
use serde::Serialize;
use tokio::time::sleep;

use crate::client::Client;
use crate::cluster::{Backends, Cluster, Target};
use crate::journal::Journal;

/// A fault. Its name is its `Debug` form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Fault {
    /// SIGKILL of all our processes at once; `heal` starts them again.
    KillEverything,
    /// SIGKILL of every replica of a role; `heal` starts them again.
    Kill(&'static str),
    /// SIGKILL of one replica of a role; `heal` starts it again.
    KillOne(&'static str),
    /// SIGSTOP of every replica of a role, and SIGCONT after 1 to 7 seconds: nothing is lost, but leases and deadlines pass.
    Pause(&'static str),
    /// SIGTERM and restart, one process after another: each is ready before the next one stops.
    RollingRestart,
    /// SIGTERM of all our processes at once; `heal` starts them again.
    StopEverything,
    /// SIGKILL of all processes of PostgreSQL, as a power cut does; `heal` starts it again.
    KillPostgres,
    /// PostgreSQL stops in an orderly way; `heal` starts it again.
    RestartPostgres,
    /// SIGSTOP of all processes of PostgreSQL: connections stay open, nothing answers; `heal` resumes them.
    FreezePostgres,
    /// SIGKILL of RabbitMQ; `heal` starts it again.
    KillRabbit,
    /// RabbitMQ stops in an orderly way; `heal` starts it again.
    RestartRabbit,
    /// SIGSTOP of RabbitMQ: connections stay open, nothing answers; `heal` resumes it.
    FreezeRabbit,
    /// All connections to PostgreSQL, RabbitMQ or the services end, and new ones are refused.
    Cut(Target),
    /// The same for the connections of one role.
    CutOne(Target),
    /// Nothing passes in either direction on one link (between a role and a server, or callers and a role) until `heal`;
    /// connections stay open.
    FreezeOne(Target),
    /// Every chunk of bytes is delayed.
    Slow(Target),
    /// A consumer has committed its work, its acknowledgements do not arrive, and it is killed.
    KillBetweenCommitAndAck(&'static str),
    /// An export worker is killed while it writes.
    KillExportWorkerMidFile,
    /// Every event of a few seconds is delivered twice more, in random order.
    Redeliver,
    /// Messages are published that are not valid events.
    Poison,
    /// The disk of export files is full until `heal`.
    FillObjectStore,
    /// The disk of the databases is full until `heal`.
    FillDatabaseDisk,
    /// The clock of a role is off by this many seconds, for a while.
    StepClock(&'static str, i64),
}

impl Fault {
    /// The faults of `make test`.
    pub fn selection() -> Vec<Self> {
        vec![
            Self::KillOne("ingest"),
            Self::KillRabbit,
            Self::KillBetweenCommitAndAck("scoring-worker"),
            Self::Redeliver,
            Self::KillPostgres,
            Self::Poison,
            Self::KillExportWorkerMidFile,
        ]
    }

    /// All faults of the standalone. It is killed fifty times.
    pub fn of_the_standalone() -> Vec<Self> {
        let mut faults = vec![Self::KillEverything; 50];
        faults.extend([Self::Pause("standalone"); 3]);
        faults.extend([Self::StopEverything; 3]);
        faults.extend([Self::FillDatabaseDisk; 3]);
        faults.extend([Self::StepClock("standalone", 3_600), Self::StepClock("standalone", -3_600)]);
        faults
    }

    /// All faults of the distributed stack, for every role.
    pub fn of_the_distributed_stack() -> Vec<Self> {
        let mut faults: Vec<Self> = ROLES
            .iter()
            .flat_map(|role| [Self::Kill(role.name), Self::KillOne(role.name), Self::Pause(role.name)])
            .collect();
        for to in [Target::Postgres, Target::Rabbit, Target::Service] {
            faults.extend([Self::Cut(to), Self::CutOne(to), Self::FreezeOne(to), Self::Slow(to)]);
        }
        for role in ["ingest", "scoring-worker", "export", "export-worker"] {
            faults.extend([Self::StepClock(role, 600), Self::StepClock(role, -600)]);
        }
        faults.extend([
            Self::KillEverything,
            Self::StopEverything,
            Self::RollingRestart,
            Self::KillPostgres,
            Self::RestartPostgres,
            Self::FreezePostgres,
            Self::KillRabbit,
            Self::RestartRabbit,
            Self::FreezeRabbit,
            Self::KillBetweenCommitAndAck("scoring-worker"),
            Self::KillBetweenCommitAndAck("export"),
            Self::KillExportWorkerMidFile,
            Self::Redeliver,
            Self::Poison,
            Self::FillObjectStore,
            Self::FillDatabaseDisk,
        ]);
        faults
    }

    /// Why the fault cannot be injected on this machine.
    pub fn unsupported_reason(self, cluster: &Cluster) -> Option<&'static str> {
        match self {
            Self::StepClock(..) if !cluster.has_clocks() => Some("libfaketime is not installed"),
            Self::FillObjectStore | Self::FillDatabaseDisk if !cluster.data.can_be_filled() => {
                Some("file systems cannot be mounted here")
            }
            _ => None,
        }
    }

    /// Injects the fault and waits while it lasts. Afterwards `Cluster::heal` repairs what is still broken.
    pub async fn inject(self, context: &mut FaultContext<'_>) -> Result<()> {
        match self {
            Self::KillEverything => processes::kill(context, None).await,
            Self::Kill(role) => processes::kill(context, Some(role)).await,
            Self::KillOne(role) => processes::kill_one(context, role).await,
            Self::Pause(role) => processes::pause(context, role).await,
            Self::RollingRestart => processes::rolling_restart(context).await,
            Self::StopEverything => processes::stop_everything(context).await,
            Self::KillExportWorkerMidFile => processes::kill_export_worker_mid_file(context).await,
            Self::KillPostgres => environment::disrupt_server(context, Backends::kill_postgres).await,
            Self::RestartPostgres => environment::disrupt_server(context, Backends::stop_postgres).await,
            Self::FreezePostgres => environment::disrupt_server(context, Backends::freeze_postgres).await,
            Self::KillRabbit => environment::disrupt_server(context, Backends::kill_rabbit).await,
            Self::RestartRabbit => environment::disrupt_server(context, Backends::stop_rabbit).await,
            Self::FreezeRabbit => environment::disrupt_server(context, Backends::freeze_rabbit).await,
            Self::FillObjectStore => environment::fill_disk(context, |cluster| &cluster.objects).await,
            Self::FillDatabaseDisk => environment::fill_disk(context, |cluster| &cluster.data).await,
            Self::StepClock(role, seconds) => environment::step_clock(context, role, seconds).await,
            Self::Cut(to) => network::set_all_links(context, to, LinkState::Cut).await,
            Self::Slow(to) => network::set_all_links(context, to, network::SLOW).await,
            Self::CutOne(to) => network::set_random_link(context, to, LinkState::Cut).await,
            Self::FreezeOne(to) => network::set_random_link(context, to, LinkState::Frozen).await,
            Self::KillBetweenCommitAndAck(role) => {
                deliveries::kill_between_commit_and_ack(context, role).await
            }
            Self::Redeliver => deliveries::redeliver(context).await,
            Self::Poison => deliveries::poison(context).await,
        }
    }
}

pub struct FaultContext<'s> {
    pub cluster: &'s mut Cluster,
    pub rng: &'s mut Rng,
    pub client: &'s Client,
    pub journal: &'s Journal,
    /// Number of poison messages: the expected number of dead letters.
    pub poisoned: &'s mut usize,
}

impl FaultContext<'_> {
    /// Waits while the fault lasts.
    async fn hold(&mut self, from: Duration, to: Duration) {
        sleep(self.rng.between(from, to)).await;
    }
}
