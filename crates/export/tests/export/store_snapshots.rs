//! Interrupted snapshots of large files on PostgreSQL.

use anyhow::{Result, ensure};
use assay_contracts::export::{ExportFilters, ExportKind};
use assay_contracts::ids::OrganizationId;
use assay_export::store::{FileSelection, Notifications, SnapshotError, WorkStore, line_channel, work_store};
use assay_platform::runtime::new_id;
use assay_testkit::{eventually, execute_on, number_on};

use crate::test_database::TestDatabase;

/// Much more than the buffers between server and receiver hold.
const ROWS: u64 = 400;
const LINE_BYTES: usize = 200_000;

struct Snapshots {
    test_database: TestDatabase,
    work: WorkStore,
    selection: FileSelection,
}

impl Snapshots {
    async fn of_large_rows() -> Result<Self> {
        let test_database = TestDatabase::postgres().await?;
        let organization_id: OrganizationId = new_id();
        let insert = format!(
            "INSERT INTO evaluation_rows SELECT gen_random_uuid(), '{organization_id}', number, 0, gen_random_uuid(), 1,
             repeat('x', {LINE_BYTES}), '' FROM generate_series(1, {ROWS}) AS number"
        );
        execute_on(&test_database.database, insert).await?;
        let (kind, filters) = (ExportKind::Axis, ExportFilters::default());
        let work = work_store(&test_database.database, Notifications::Off);
        Ok(Self { test_database, work, selection: FileSelection { organization_id, kind, filters } })
    }

    /// Reads all of it.
    async fn read_all(&self) -> Result<()> {
        let (sink, mut lines) = line_channel();
        let receiving = async {
            let mut bytes = 0;
            while let Some(chunk) = lines.recv().await {
                bytes += chunk.len();
            }
            bytes
        };
        let (rows, bytes) = tokio::join!(self.work.copy_lines(self.selection.clone(), sink), receiving);
        ensure!(rows? == ROWS && bytes == ROWS as usize * (LINE_BYTES + 2), "{bytes} bytes");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aborted_snapshot_leaves_a_usable_connection() -> Result<()> {
    let snapshots = Snapshots::of_large_rows().await?;
    let (sink, mut lines) = line_channel();
    let receiving = async {
        let first = lines.recv().await;
        drop(lines);
        first
    };
    let (outcome, first) =
        tokio::join!(snapshots.work.copy_lines(snapshots.selection.clone(), sink), receiving);
    assert!(first.is_some() && matches!(outcome, Err(SnapshotError::Abandoned)), "{outcome:?}");
    snapshots.read_all().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_ended_by_the_server_fails_the_snapshot() -> Result<()> {
    let snapshots = Snapshots::of_large_rows().await?;
    let (sink, mut lines) = line_channel();
    let receiving = async {
        let mut bytes = lines.recv().await.map_or(0, |chunk| chunk.len());
        let end = "SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE datname = current_database() AND query LIKE 'FETCH %' AND state = 'active') AS ended";
        // Between two FETCHes the connection is idle.
        let has_ended = || async { Ok(number_on(&snapshots.test_database.database, end).await? == 1) };
        eventually("a FETCH that is ended", has_ended).await?;
        while let Some(chunk) = lines.recv().await {
            bytes += chunk.len();
        }
        anyhow::Ok(bytes)
    };
    let (outcome, received) =
        tokio::join!(snapshots.work.copy_lines(snapshots.selection.clone(), sink), receiving);
    let bytes = received?;
    assert!(bytes < ROWS as usize * LINE_BYTES, "all of it had been sent before");
    assert!(matches!(outcome, Err(SnapshotError::Database(_))), "{outcome:?}");
    snapshots.read_all().await
}
