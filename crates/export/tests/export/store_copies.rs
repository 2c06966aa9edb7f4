//! Large snapshots on PostgreSQL that do not come to their end.

use std::sync::Arc;

use anyhow::{Result, ensure};
use assay_contracts::export::{ExportFilters, ExportKind};
use assay_contracts::ids::OrganizationId;
use assay_export::store::{Announces, Selection, SnapshotError, WorkStore, line_channel, work_store};
use assay_platform::runtime::new_id;

use crate::place::{Located, execute, number};

/// Much more than what fits between the server and the receiver.
const ROWS: u64 = 400;
const LINE_BYTES: usize = 200_000;

/// What the server does for the snapshot.
const COPYING: &str =
    "FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'COPY (%' AND state = 'active'";

struct Copies {
    located: Located,
    work: Arc<dyn WorkStore>,
    selection: Selection,
}

impl Copies {
    async fn of_large_rows() -> Result<Self> {
        let located = Located::postgres().await?;
        let organization_id: OrganizationId = new_id();
        let insert = format!(
            "INSERT INTO evaluation_rows SELECT gen_random_uuid(), '{organization_id}', number, 0, gen_random_uuid(), 1,
             repeat('x', {LINE_BYTES}), '' FROM generate_series(1, {ROWS}) AS number"
        );
        execute(&located.database, insert).await?;
        let (kind, filters) = (ExportKind::Axis, ExportFilters::default());
        let work = work_store(&located.database, Announces::Nothing);
        Ok(Self { located, work, selection: Selection { organization_id, kind, filters } })
    }

    /// Reads all of it.
    async fn is_readable(&self) -> Result<()> {
        let (sink, mut lines) = line_channel();
        let receiving = async {
            let mut bytes = 0;
            while let Some(chunk) = lines.recv().await {
                bytes += chunk.len();
            }
            bytes
        };
        let (rows, bytes) = tokio::join!(self.work.copy_lines(self.selection, sink), receiving);
        ensure!(rows? == ROWS && bytes == ROWS as usize * (LINE_BYTES + 2), "{bytes} bytes");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_is_given_up_half_way_ends_its_statement() -> Result<()> {
    let copies = Copies::of_large_rows().await?;
    let (sink, mut lines) = line_channel();
    let receiving = async {
        let first = lines.recv().await;
        drop(lines);
        first
    };
    let (outcome, first) = tokio::join!(copies.work.copy_lines(copies.selection, sink), receiving);
    assert!(first.is_some() && matches!(outcome, Err(SnapshotError::Abandoned)), "{outcome:?}");
    assert_eq!(number(&copies.located.database, &format!("SELECT count(*) {COPYING}")).await?, 0);
    // The connection is as good as new.
    copies.is_readable().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_the_server_stops_sending_are_no_snapshot() -> Result<()> {
    let copies = Copies::of_large_rows().await?;
    let (sink, mut lines) = line_channel();
    let receiving = async {
        let mut bytes = lines.recv().await.map_or(0, |chunk| chunk.len());
        let cancel = format!("SELECT count(*) FROM (SELECT pg_cancel_backend(pid) {COPYING}) AS cancelled");
        let cancelled = number(&copies.located.database, &cancel).await?;
        while let Some(chunk) = lines.recv().await {
            bytes += chunk.len();
        }
        anyhow::Ok((cancelled, bytes))
    };
    let (outcome, received) = tokio::join!(copies.work.copy_lines(copies.selection, sink), receiving);
    let (cancelled, bytes) = received?;
    assert_eq!(cancelled, 1);
    assert!(bytes < ROWS as usize * LINE_BYTES, "all of it had been sent before");
    assert!(matches!(outcome, Err(SnapshotError::Database(_))), "{outcome:?}");
    copies.is_readable().await
}
