//! A standalone with dead events.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use assay_messaging::outbox::{Connection as _, FastPathClaim, Outbox, relay};
use assay_messaging::{Bus, BusSettings, OutgoingEvent};
use assay_platform::db::{Database, DatabaseSettings, Migrations};
use assay_platform::runtime::new_id;
use assay_testkit::eventually;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::events::{Consumer, Recorder, accepted_event, command, rejection, text};

/// The data folder of a standalone whose consumer rejected events of ingest.
pub struct Standalone {
    folder: TempDir,
    outbox: Outbox,
    pub ids: Vec<String>,
    pub organization_id: String,
}

impl Standalone {
    pub async fn with_dead_events(count: usize) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        // The commands refuse a folder without this file.
        File::create(folder.path().join("lock"))?;
        for (schema, migrations) in [
            (assay_agent_registry::SCHEMA, assay_agent_registry::MIGRATIONS),
            (assay_scoring_worker::SCHEMA, assay_scoring_worker::MIGRATIONS),
            (assay_export::SCHEMA, assay_export::MIGRATIONS),
        ] {
            migrated(folder.path(), schema, migrations).await?;
        }
        let database = migrated(folder.path(), assay_ingest::SCHEMA, assay_ingest::MIGRATIONS).await?;
        let organization_id = new_id();
        let events: Vec<OutgoingEvent> =
            (0..count).map(|_| accepted_event(organization_id)).collect::<Result<_>>()?;
        let ids = events.iter().map(|event| event.id().to_string()).collect();
        let Database::Sqlite(sqlite) = &database else { panic!("this is SQLite") };
        sqlite.write(move |connection| connection.enqueue_events(&events, FastPathClaim::NONE)).await?;

        let bus = Bus::open(&BusSettings::new("local:"))?;
        let outbox = Outbox::new(database);
        let _consumer = Consumer::start(&bus, Arc::new(Recorder::returning(rejection())));
        let mut tasks = JoinSet::new();
        tasks.spawn(relay(outbox.clone(), bus, CancellationToken::new()));
        let all_are_dead = || async { Ok(outbox.status().await?.dead == count as u64) };
        eventually("the dead events", all_are_dead).await?;
        tasks.shutdown().await;
        Ok(Self { folder, outbox, ids, organization_id: organization_id.to_string() })
    }

    /// Runs a command that must succeed. Returns its standard output.
    pub fn succeed(&self, arguments: &[&str]) -> String {
        let output = command().args(arguments).arg("--data-dir").arg(self.folder.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        text(&output.stdout)
    }

    pub async fn pending_and_dead(&self) -> Result<(u64, u64)> {
        let status = self.outbox.status().await?;
        Ok((status.pending, status.dead))
    }
}

async fn migrated(
    folder: &Path,
    schema: &'static str,
    migrations: &'static [Migrations],
) -> Result<Database> {
    let database_url = format!("sqlite:{}", folder.join(format!("{schema}.sqlite")).display()).into();
    let database = Database::open(&DatabaseSettings { database_url, database_pool_size: 2 }, schema)?;
    database.migrate(migrations).await?;
    Ok(database)
}
