//! What can go wrong, and doing it.

mod deliveries;
mod network;
mod processes;
mod surroundings;

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use tokio::time::sleep;

use crate::client::Client;
use crate::dice::Dice;
use crate::journal::Journal;
use crate::site::{ROLES, Site, To};

/// A fault. Its name is its `Debug` form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Fault {
    /// SIGKILL of all processes of ours at once.
    KillEverything,
    /// SIGKILL of every replica of a role.
    Kill(&'static str),
    /// SIGKILL of one replica of a role.
    KillOne(&'static str),
    /// SIGSTOP of every replica of a role, and SIGCONT after a while.
    Pause(&'static str),
    /// SIGTERM and a new start, one process after another.
    RollingRestart,
    /// SIGTERM of everything at once.
    StopEverything,
    KillPostgres,
    RestartPostgres,
    FreezePostgres,
    KillRabbit,
    RestartRabbit,
    FreezeRabbit,
    /// All connections to PostgreSQL, RabbitMQ or the services end, and new ones are refused.
    Cut(To),
    /// The same for the connections of one role.
    CutOne(To),
    /// Nothing passes between one role and a server for a while; connections stay open.
    FreezeOne(To),
    /// Every chunk of bytes comes late.
    Slow(To),
    /// A consumer has committed its work, its acknowledgements do not arrive, and it is killed.
    KillBetweenCommitAndAck(&'static str),
    /// An export worker is killed while it writes.
    KillExportWorkerMidFile,
    /// Every event of a few seconds comes twice more, in another order.
    Redeliver,
    /// Messages that are no events.
    Poison,
    FillObjectStore,
    FillDatabaseDisk,
    /// The clock of a role is off by so many seconds, for a while.
    StepClock(&'static str, i64),
}

impl Fault {
    /// For the tests that everybody runs.
    pub fn a_few() -> Vec<Self> {
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

    /// For the standalone, killed fifty times.
    pub fn of_the_standalone() -> Vec<Self> {
        let mut faults = vec![Self::KillEverything; 50];
        faults.extend([Self::Pause("standalone"); 3]);
        faults.extend([Self::StopEverything; 3]);
        faults.extend([Self::FillDatabaseDisk; 3]);
        faults.extend([Self::StepClock("standalone", 3_600), Self::StepClock("standalone", -3_600)]);
        faults
    }

    /// Every fault there is, each role's included.
    pub fn of_the_distributed_stack() -> Vec<Self> {
        let mut faults: Vec<Self> = ROLES
            .iter()
            .flat_map(|role| [Self::Kill(role), Self::KillOne(role), Self::Pause(role)])
            .collect();
        for to in [To::Postgres, To::Rabbit, To::Service] {
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

    /// Why it cannot be done here.
    pub fn impossible(self, site: &Site) -> Option<&'static str> {
        match self {
            Self::StepClock(..) if !site.has_clocks() => Some("libfaketime is not installed"),
            Self::FillObjectStore | Self::FillDatabaseDisk if !site.data.can_be_filled() => {
                Some("file systems cannot be mounted here")
            }
            _ => None,
        }
    }

    /// Does it, for as long as it lasts. What it leaves behind is for `Site::mend`.
    pub async fn strike(self, stage: &mut Stage<'_>) -> Result<()> {
        match self {
            Self::KillEverything => processes::kill(stage, None).await,
            Self::Kill(role) => processes::kill(stage, Some(role)).await,
            Self::KillOne(role) => processes::kill_one(stage, role).await,
            Self::Pause(role) => processes::pause(stage, role).await,
            Self::RollingRestart => processes::restart_one_by_one(stage).await,
            Self::StopEverything => processes::stop_everything(stage).await,
            Self::KillExportWorkerMidFile => processes::kill_export_worker_mid_file(stage).await,
            Self::KillPostgres
            | Self::RestartPostgres
            | Self::FreezePostgres
            | Self::KillRabbit
            | Self::RestartRabbit
            | Self::FreezeRabbit => surroundings::server(self, stage).await,
            Self::FillObjectStore | Self::FillDatabaseDisk => surroundings::fill(self, stage).await,
            Self::StepClock(role, seconds) => surroundings::step_clock(stage, role, seconds).await,
            Self::Cut(_) | Self::CutOne(_) | Self::FreezeOne(_) | Self::Slow(_) => {
                network::strike(self, stage).await
            }
            Self::KillBetweenCommitAndAck(role) => deliveries::kill_between_commit_and_ack(stage, role).await,
            Self::Redeliver => deliveries::redeliver(stage).await,
            Self::Poison => deliveries::poison(stage).await,
        }
    }
}

/// What a fault works on.
pub struct Stage<'s> {
    pub site: &'s mut Site,
    pub dice: &'s mut Dice,
    pub client: &'s Client,
    pub journal: &'s Journal,
    /// Messages that were poisoned: so many dead letters there must be in the end.
    pub poisoned: &'s mut usize,
}

impl Stage<'_> {
    /// Lets the fault last for a while.
    async fn hold(&mut self, from: Duration, to: Duration) {
        let millis = |span: Duration| usize::try_from(span.as_millis()).unwrap_or_default();
        sleep(self.dice.millis(millis(from), millis(to))).await;
    }
}
