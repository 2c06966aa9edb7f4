//! Deletion and retention of rows.

use anyhow::Result;
use assay_contracts::event::{ConversationEvaluated, EvaluationDeleted};
use assay_contracts::export::{ExportFilters, ExportKind};
use assay_contracts::ids::{EventId, ExportId, OrganizationId, TicketId};
use assay_contracts::internal::OrganizationRetention;
use assay_contracts::retention::RetentionPeriod;
use assay_contracts::time::{DAY_MILLIS, Timestamp};
use assay_export::domain::evaluation_row::EvaluationRow;
use assay_export::domain::removal::DeletedRow;
use assay_export::store::FileSelection;
use assay_messaging::{OutgoingEvent, PublishError};
use assay_platform::runtime::{new_id, now};
use assay_testkit::{eventually, number_on, on_both_databases};
use futures_util::future::try_join;
use uuid::Uuid;

use crate::consumer::outgoing;
use crate::samples::{STARTED, evaluated, evaluated_again};
use crate::test_app::TestApp;
use crate::test_database::{Stores, create_job, read_lines};

impl Stores {
    async fn record_event(&self, event_id: EventId, event: &ConversationEvaluated) -> Result<()> {
        Ok(self.exports.record_rows(vec![EvaluationRow::of(event_id, event)].into(), now()).await?)
    }

    async fn delete(&self, event_id: EventId, ticket_id: TicketId) -> Result<()> {
        let row =
            DeletedRow { event_id, organization_id: self.organization_id, ticket_id, deleted_at: now() };
        Ok(self.exports.delete_rows(vec![row], now()).await?)
    }

    /// Number of lines of a file of this kind.
    async fn lines(&self, kind: ExportKind) -> Result<u64> {
        let (organization_id, filters) = (self.organization_id, ExportFilters::default());
        Ok(read_lines(&self.work, FileSelection { organization_id, kind, filters }).await?.0)
    }

    /// Creates an export with this target sequence.
    async fn export_of(&self, target: i64) -> Result<ExportId> {
        let filters = ExportFilters::default();
        create_job(&self.exports, self.organization_id, filters, now(), Some(target)).await
    }
}

/// `e`: the evaluation, `n`: a newer one of the same ticket, `d`: the deletion; capitals: the same event once more.
const ORDERS: [&str; 9] = ["ed", "de", "dE", "ednD", "dne", "end", "eEdD", "dDeE", "nDEd"];

async fn deletion_wins_in_every_order_and_every_evaluation_counts(rows: Stores) -> Result<()> {
    let mut recorded = 0;
    for order in ORDERS {
        let first =
            ConversationEvaluated { sequence: recorded + 1, ..evaluated(rows.organization_id, STARTED) };
        let newer = ConversationEvaluated { sequence: recorded + 2, ..evaluated_again(&first, "newer", 1) };
        let (e, n, d): (EventId, EventId, EventId) = (new_id(), new_id(), new_id());
        for event in order.chars() {
            match event {
                'e' | 'E' => rows.record_event(e, &first).await?,
                'n' => rows.record_event(n, &newer).await?,
                _ => rows.delete(d, first.ticket.id).await?,
            }
        }
        for kind in [ExportKind::Axis, ExportKind::ResolutionAudit] {
            assert_eq!(rows.lines(kind).await?, 0, "{order}");
        }
        recorded += i64::from(order.to_lowercase().contains('e')) + i64::from(order.contains('n'));
    }
    // The watermark is exactly the number of recorded evaluations.
    let (enough, too_many) = (rows.export_of(recorded).await?, rows.export_of(recorded + 1).await?);
    assert_eq!(rows.work.evaluation_lag(enough).await?, Some(0));
    assert_eq!(rows.work.evaluation_lag(too_many).await?, Some(1));
    Ok(())
}

async fn tombstone_keeps_no_data_of_the_evaluation(rows: Stores) -> Result<()> {
    let (gone, kept) = (evaluated(rows.organization_id, STARTED), evaluated(rows.organization_id, STARTED));
    rows.record_event(new_id(), &gone).await?;
    rows.record_event(new_id(), &kept).await?;
    rows.delete(new_id(), gone.ticket.id).await?;
    assert_eq!(rows.lines(ExportKind::Axis).await?, 1);
    let traces = format!(
        "SELECT count(*) FROM evaluation_rows WHERE ticket_id = '{}' AND (axis_line <> '' OR audit_line <> '' \
         OR organization_id = '{}' OR evaluation_id = '{}')",
        gone.ticket.id, rows.organization_id, gone.evaluation_id
    );
    assert_eq!(number_on(&rows.test_database.database, &traces).await?, 0);
    Ok(())
}

async fn concurrent_record_and_delete_do_not_conflict(rows: Stores) -> Result<()> {
    for _ in 0..30 {
        let event = evaluated(rows.organization_id, STARTED);
        try_join(rows.record_event(new_id(), &event), rows.delete(new_id(), event.ticket.id)).await?;
    }
    assert_eq!(rows.lines(ExportKind::Axis).await?, 0);
    Ok(())
}

async fn deletion_by_another_organization_changes_no_row(rows: Stores) -> Result<()> {
    let foreign = evaluated(new_id(), STARTED);
    rows.record_event(new_id(), &foreign).await?;
    rows.delete(new_id(), foreign.ticket.id).await?;
    let rows_left = "SELECT count(*) FROM evaluation_rows WHERE axis_line <> ''";
    assert_eq!(number_on(&rows.test_database.database, rows_left).await?, 1);
    Ok(())
}

on_both_databases! { Stores {
    deletion_wins_in_every_order_and_every_evaluation_counts,
    tombstone_keeps_no_data_of_the_evaluation,
    concurrent_record_and_delete_do_not_conflict,
    deletion_by_another_organization_changes_no_row,
} }

async fn publish(app: &TestApp, event: OutgoingEvent) -> Result<()> {
    let event = [event];
    eventually("the consumer", || async {
        match app.bus.publish(&event).await.remove(0) {
            Ok(()) => Ok(true),
            Err(PublishError::Rejected { reason }) => anyhow::bail!("{reason}"),
            Err(_) => Ok(false),
        }
    })
    .await
}

async fn row_count(app: &TestApp, organization: OrganizationId) -> Result<i64> {
    let own = format!("SELECT count(*) FROM evaluation_rows WHERE organization_id = '{organization}'");
    number_on(&app.test_database.database, &own).await
}

async fn deletion_event_removes_the_row_permanently(app: TestApp) -> Result<()> {
    let organization_id = new_id();
    let event = evaluated(organization_id, STARTED);
    publish(&app, outgoing(&event)?).await?;
    assert_eq!(row_count(&app, organization_id).await?, 1);
    let deleted = EvaluationDeleted { organization_id, ticket_id: event.ticket.id, deleted_at: now() };
    publish(&app, OutgoingEvent::new(new_id(), now(), &deleted)?).await?;
    publish(&app, outgoing(&evaluated_again(&event, "late", 5))?).await?;
    assert_eq!(row_count(&app, organization_id).await?, 0);
    Ok(())
}

async fn event_older_than_tombstone_retention_is_refused(app: TestApp) -> Result<()> {
    let event = evaluated(new_id(), STARTED);
    publish(&app, outgoing(&event)?).await?;
    let days_ago_91 = u64::try_from(now().plus_millis(-91 * DAY_MILLIS).as_millis())?;
    let old = uuid::Builder::from_unix_timestamp_millis(days_ago_91, &[7; 10]).into_uuid();
    let old_event = OutgoingEvent::new(old.into(), event.evaluated_at, &event)?;
    let refused = app.bus.publish(&[old_event]).await.remove(0);
    assert!(
        matches!(&refused, Err(PublishError::Rejected { reason }) if reason.contains("may have been deleted")),
        "{refused:?}"
    );
    Ok(())
}

/// An evaluation of a ticket imported `days` ago.
fn imported_days_ago(organization_id: OrganizationId, days: i64) -> ConversationEvaluated {
    let mut event = evaluated(organization_id, STARTED);
    // The time is in the first 48 bits of the id; the other 80 are random.
    let first = TicketId::min_at(now().plus_millis(-days * DAY_MILLIS)).as_uuid().as_u128();
    event.ticket.id = Uuid::from_u128(first | (Uuid::new_v4().as_u128() >> 48)).into();
    event
}

async fn only_rows_beyond_their_retention_period_are_removed(app: TestApp) -> Result<()> {
    let organization_id: OrganizationId = new_id();
    let kept = |organization_id, evaluations| OrganizationRetention {
        organization_id,
        transcripts: RetentionPeriod::Days(1),
        evaluations,
        files: None,
    };
    for days in [29, 31, 400] {
        publish(&app, outgoing(&imported_days_ago(organization_id, days))?).await?;
    }
    let nothing_to_remove = [
        None,
        Some(vec![kept(organization_id, RetentionPeriod::Forever), kept(new_id(), RetentionPeriod::Days(1))]),
    ];
    for retention in nothing_to_remove {
        app.registry.set_retention(retention);
        app.registry.next_maintenance_run().await?;
        assert_eq!(row_count(&app, organization_id).await?, 3);
    }
    app.registry.set_retention(Some(vec![kept(organization_id, RetentionPeriod::Days(30))]));
    eventually("the removal", || async { Ok(row_count(&app, organization_id).await? == 1) }).await?;
    app.registry.next_maintenance_run().await?;
    assert_eq!(row_count(&app, organization_id).await?, 1);
    Ok(())
}

async fn tombstones_are_pruned_after_their_retention(app: TestApp) -> Result<()> {
    for days in [91, 89] {
        let deleted_at: Timestamp = now().plus_millis(-days * DAY_MILLIS);
        let deleted = EvaluationDeleted { organization_id: new_id(), ticket_id: new_id(), deleted_at };
        publish(&app, OutgoingEvent::new(new_id(), now(), &deleted)?).await?;
    }
    let left = "SELECT count(*) FROM evaluation_rows";
    app.test_database.number_becomes("the older tombstone to be pruned", left, 1).await?;
    app.registry.next_maintenance_run().await?;
    assert_eq!(number_on(&app.test_database.database, left).await?, 1);
    Ok(())
}

mod running {
    use super::*;

    on_both_databases! { TestApp {
        deletion_event_removes_the_row_permanently,
        event_older_than_tombstone_retention_is_refused,
        only_rows_beyond_their_retention_period_are_removed,
        tombstones_are_pruned_after_their_retention,
    } }
}
