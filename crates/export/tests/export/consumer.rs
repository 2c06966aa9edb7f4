//! `conversation.evaluated.v1` on the bus.

use anyhow::Result;
use assay_contracts::event::{ConversationEvaluated, ExportRequested};
use assay_contracts::export::ExportKind;
use assay_contracts::time::Timestamp;
use assay_messaging::{OutgoingEvent, PublishError};
use assay_platform::runtime::new_id;
use assay_testkit::{eventually, number_on, on_both_databases};

use crate::samples::{STARTED, evaluated, evaluated_again};
use crate::test_app::TestApp;

const COUNT: &str = "SELECT count(*) FROM evaluation_rows";

pub fn outgoing(event: &ConversationEvaluated) -> Result<OutgoingEvent> {
    Ok(OutgoingEvent::new(new_id(), event.evaluated_at, event)?)
}

/// The local bus returns `Ok` once the consumer has handled the event, and an error before the consumer listens.
async fn publish(app: &TestApp, events: &[OutgoingEvent]) -> Result<Vec<Result<(), PublishError>>> {
    let listens = eventually("the consumer", || async {
        let probe = evaluated(new_id(), Timestamp::MIN);
        Ok(app.bus.publish(&[outgoing(&probe)?]).await.iter().all(Result::is_ok))
    });
    listens.await?;
    Ok(app.bus.publish(events).await)
}

async fn redelivered_evaluation_is_one_row(app: TestApp) -> Result<()> {
    let organization = new_id();
    let event = evaluated(organization, STARTED);
    let (first, newer) = (outgoing(&event)?, outgoing(&evaluated_again(&event, "newer", 1))?);
    let other = outgoing(&evaluated(organization, STARTED))?;
    for result in publish(&app, &[first.clone(), other, newer, first.clone()]).await? {
        result?;
    }
    for result in publish(&app, &[first]).await? {
        result?;
    }
    let own = format!("{COUNT} WHERE organization_id = '{organization}'");
    assert_eq!(number_on(&app.test_database.database, &own).await?, 2);
    let newest = format!("{own} AND axis_line LIKE '%,newer,%' AND audit_line LIKE '%,newer,%'");
    assert_eq!(number_on(&app.test_database.database, &newest).await?, 1);
    Ok(())
}

async fn every_evaluation_of_many_batches_arrives(app: TestApp) -> Result<()> {
    let organization = new_id();
    let events = (0..200).map(|second| outgoing(&evaluated(organization, STARTED.plus_millis(second))));
    let events = events.collect::<Result<Vec<_>>>()?;
    for result in publish(&app, &events).await? {
        result?;
    }
    let own = format!("{COUNT} WHERE organization_id = '{organization}'");
    assert_eq!(number_on(&app.test_database.database, &own).await?, 200);
    // The role does not consume other topics.
    let requested =
        ExportRequested { organization_id: organization, export_id: new_id(), kind: ExportKind::Axis };
    let requested = OutgoingEvent::new(new_id(), STARTED, &requested)?;
    let refused = app.bus.publish(&[requested]).await;
    assert!(matches!(refused[0], Err(PublishError::Unroutable { .. })), "{refused:?}");
    Ok(())
}

/// PostgreSQL cannot store a NUL character; SQLite can.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unstorable_event_does_not_block_its_batch() -> Result<()> {
    let app = TestApp::on_postgres().await?;
    let organization = new_id();
    let mut poison = evaluated(organization, STARTED);
    poison.ticket.external_id = "a\u{0}b".to_owned();
    let events = [evaluated(organization, STARTED), poison, evaluated(organization, STARTED)];
    let events = events.iter().map(outgoing).collect::<Result<Vec<_>>>()?;
    let results = publish(&app, &events).await?;
    assert!(results[0].is_ok() && results[2].is_ok(), "{results:?}");
    assert!(matches!(results[1], Err(PublishError::Retry { .. })), "{results:?}");
    let own = format!("{COUNT} WHERE organization_id = '{organization}'");
    assert_eq!(number_on(&app.test_database.database, &own).await?, 2);
    Ok(())
}

on_both_databases! { TestApp {
    redelivered_evaluation_is_one_row,
    every_evaluation_of_many_batches_arrives,
} }
