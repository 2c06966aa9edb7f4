//! The read model: replacement of rows, and snapshots.

use anyhow::{Result, bail};
use assay_contracts::event::ConversationEvaluated;
use assay_contracts::export::{ExportFilters, ExportKind};
use assay_contracts::ids::EventId;
use assay_export::domain::csv::render;
use assay_export::domain::evaluation_row::EvaluationRow;
use assay_export::store::{FileSelection, SnapshotError, line_channel};
use assay_platform::runtime::{new_id, now};
use assay_testkit::{execute_on, number_on, on_both_databases};

use crate::samples::{STARTED, evaluated, evaluated_again};
use crate::test_database::{Stores, read_lines};

impl Stores {
    fn evaluated_at_second(&self, second: i64) -> ConversationEvaluated {
        evaluated(self.organization_id, STARTED.plus_millis(second * 1_000))
    }

    async fn record(&self, events: &[&ConversationEvaluated]) -> Result<()> {
        let rows = events.iter().map(|event| EvaluationRow::of(new_id(), event)).collect::<Vec<_>>();
        Ok(self.exports.record_rows(rows.into(), now()).await?)
    }

    fn selection(&self) -> FileSelection {
        let (kind, filters) = (ExportKind::Axis, ExportFilters::default());
        FileSelection { organization_id: self.organization_id, kind, filters }
    }

    async fn snapshot(&self, selection: FileSelection) -> Result<String> {
        let (count, content) = read_lines(&self.work, selection).await?;
        let content = String::from_utf8(content)?;
        assert_eq!(count, content.matches(",scored,").count() as u64);
        Ok(content)
    }

    async fn everything(&self) -> Result<String> {
        self.snapshot(self.selection()).await
    }
}

fn file_of(events: &[&ConversationEvaluated]) -> String {
    events.iter().map(|event| render(ExportKind::Axis, event) + "\r\n").collect()
}

async fn only_a_newer_evaluation_replaces_the_row(rows: Stores) -> Result<()> {
    let first = rows.evaluated_at_second(0);
    let newer = evaluated_again(&first, "newer", 1);
    let older = evaluated_again(&first, "older", -1);
    rows.record(&[&first]).await?;
    rows.record(&[&newer]).await?;
    rows.record(&[&older]).await?;
    assert_eq!(rows.everything().await?, file_of(&[&newer]));
    Ok(())
}

async fn newest_evaluation_of_a_batch_is_kept(rows: Stores) -> Result<()> {
    let first = rows.evaluated_at_second(0);
    let newest = evaluated_again(&first, "newest", 5);
    let older = evaluated_again(&first, "older", 3);
    rows.record(&[&first, &newest, &older]).await?;
    assert_eq!(rows.everything().await?, file_of(&[&newest]));
    Ok(())
}

async fn event_is_handled_once(rows: Stores) -> Result<()> {
    let first = rows.evaluated_at_second(0);
    let changed = evaluated_again(&first, "changed", 1);
    let event_id: EventId = new_id();
    rows.exports.record_rows(vec![EvaluationRow::of(event_id, &first)].into(), now()).await?;
    // Unrealistic, but shows that the event is not handled again.
    rows.exports.record_rows(vec![EvaluationRow::of(event_id, &changed)].into(), now()).await?;
    assert_eq!(rows.everything().await?, file_of(&[&first]));
    Ok(())
}

async fn each_kind_of_file_has_its_own_lines(rows: Stores) -> Result<()> {
    let event = rows.evaluated_at_second(0);
    rows.record(&[&event]).await?;
    let kind = ExportKind::ResolutionAudit;
    let selection = FileSelection { kind, ..rows.selection() };
    assert_eq!(rows.snapshot(selection).await?, render(kind, &event) + "\r\n");
    Ok(())
}

async fn lines_of_a_newer_version_are_refused(rows: Stores) -> Result<()> {
    rows.record(&[&rows.evaluated_at_second(0)]).await?;
    execute_on(&rows.test_database.database, "UPDATE evaluation_rows SET columns_version = 99").await?;
    let (sink, _lines) = line_channel();
    match rows.work.copy_lines(rows.selection(), sink).await {
        Err(SnapshotError::Columns(unknown)) => assert_eq!(unknown.0, 99),
        other => bail!("{other:?}"),
    }
    Ok(())
}

async fn snapshot_does_not_see_later_rows(rows: Stores) -> Result<()> {
    // Several times the buffers between reader and receiver.
    let mut events: Vec<_> = (0..40).map(|second| rows.evaluated_at_second(second)).collect();
    for event in &mut events {
        event.ticket.subject = Some("x".repeat(200_000));
    }
    rows.record(&events.iter().collect::<Vec<_>>()).await?;
    let (sink, mut lines) = line_channel();
    let selection = rows.selection();
    let receiving = async {
        let mut content = lines.recv().await.map(Vec::from).unwrap_or_default();
        // The snapshot has started; the new row would be its last.
        rows.record(&[&rows.evaluated_at_second(1_000)]).await?;
        while let Some(chunk) = lines.recv().await {
            content.extend_from_slice(&chunk);
        }
        anyhow::Ok(content)
    };
    let (count, content) = tokio::join!(rows.work.copy_lines(selection, sink), receiving);
    assert_eq!(count?, 40);
    assert!(String::from_utf8(content?)? == file_of(&events.iter().collect::<Vec<_>>()));
    assert_eq!(number_on(&rows.test_database.database, "SELECT count(*) FROM evaluation_rows").await?, 41);
    Ok(())
}

async fn snapshot_stops_when_the_receiver_is_dropped(rows: Stores) -> Result<()> {
    let mut event = rows.evaluated_at_second(0);
    event.ticket.subject = Some("x".repeat(400_000));
    rows.record(&[&event]).await?;
    let (sink, lines) = line_channel();
    drop(lines);
    let result = rows.work.copy_lines(rows.selection(), sink).await;
    assert!(matches!(result, Err(SnapshotError::Abandoned)), "{result:?}");
    // The connection can be reused.
    assert_eq!(rows.everything().await?, file_of(&[&event]));
    Ok(())
}

async fn concurrent_writers_of_the_same_tickets_do_not_deadlock(rows: Stores) -> Result<()> {
    let events: Vec<_> = (0..20).map(|second| rows.evaluated_at_second(second)).collect();
    let again: Vec<_> = events.iter().rev().map(|event| evaluated_again(event, "again", 1)).collect();
    let (forward, backward): (Vec<_>, Vec<_>) = (events.iter().collect(), again.iter().collect());
    for _ in 0..5 {
        let (one, other) = tokio::join!(rows.record(&forward), rows.record(&backward));
        one.and(other)?;
    }
    let expected: Vec<_> = again.iter().rev().collect();
    assert_eq!(rows.everything().await?, file_of(&expected));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ensure_partitions_is_idempotent() -> Result<()> {
    let rows = Stores::on_postgres().await?;
    let count = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'evaluation_rows'::regclass";
    assert_eq!(number_on(&rows.test_database.database, count).await?, 1);
    for _ in 0..2 {
        rows.exports.ensure_partitions(now()).await?;
        // The default, last month's, this month's and the next three.
        assert_eq!(number_on(&rows.test_database.database, count).await?, 6);
    }
    rows.record(&[&rows.evaluated_at_second(0)]).await?;
    let in_default = "SELECT count(*) FROM evaluation_rows_default";
    assert_eq!(number_on(&rows.test_database.database, in_default).await?, 0);
    assert_eq!(number_on(&rows.test_database.database, "SELECT count(*) FROM evaluation_rows").await?, 1);
    Ok(())
}

on_both_databases! { Stores {
    only_a_newer_evaluation_replaces_the_row,
    newest_evaluation_of_a_batch_is_kept,
    event_is_handled_once,
    each_kind_of_file_has_its_own_lines,
    lines_of_a_newer_version_are_refused,
    snapshot_does_not_see_later_rows,
    snapshot_stops_when_the_receiver_is_dropped,
    concurrent_writers_of_the_same_tickets_do_not_deadlock,
} }
