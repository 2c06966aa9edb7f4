//! `assay dead-letter` and `assay outbox` on real dead letters.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod broker;
mod events;
mod standalone;

use std::sync::Arc;

use anyhow::{Context as _, Result};
use assay_messaging::Outcome;
use assay_testkit::eventually;

use broker::{Broker, FOREIGN_MESSAGE};
use events::{Consumer, Recorder, SUBSCRIPTION, text};
use standalone::Standalone;

#[tokio::test]
async fn rabbitmq_list_shows_reasons_but_no_contents() -> Result<()> {
    let broker = Broker::with_dead_letters().await?;
    let list = broker.list();
    assert!(list.contains("scoring-worker.conversation-accepted: 2 dead letters\n"), "{list}");
    assert!(list.contains("export.conversation-evaluated: 0 dead letters\n"), "{list}");
    assert!(list.contains("export-worker.export-requested: 0 dead letters\n"), "{list}");
    let event_line = list.lines().find(|line| line.contains(&broker.event_id)).context("the event")?;
    assert!(event_line.contains("conversation.accepted.v1"), "{event_line}");
    assert!(event_line.ends_with("attempts: 1  unknown kind of author"), "{event_line}");
    assert!(list.contains("not a CloudEvents 1.0 envelope"), "{list}");
    assert!(!list.contains("of a customer"), "{list}");
    Ok(())
}

#[tokio::test]
async fn rabbitmq_show_prints_one_dead_letter() -> Result<()> {
    let broker = Broker::with_dead_letters().await?;
    let shown = broker.assay(&["dead-letter", "show", &broker.id_of_foreign_message()?]);
    assert!(shown.status.success(), "{shown:?}");
    assert_eq!(text(&shown.stdout), format!("{FOREIGN_MESSAGE}\n"));
    Ok(())
}

#[tokio::test]
async fn rabbitmq_dead_letters_are_dropped_and_retried() -> Result<()> {
    let broker = Broker::with_dead_letters().await?;
    let dropped = broker.assay(&["dead-letter", "drop", &broker.id_of_foreign_message()?]);
    assert!(dropped.status.success(), "{dropped:?}");
    assert!(broker.list().contains("scoring-worker.conversation-accepted: 1 dead letter\n"));

    let retried = broker.assay(&["dead-letter", "retry", "--all", "--queue", SUBSCRIPTION.queue]);
    assert!(retried.status.success(), "{retried:?}");
    assert!(broker.list().contains("scoring-worker.conversation-accepted: 0 dead letters\n"));
    let handler = Arc::new(Recorder::returning(Outcome::Done));
    let _consumer = Consumer::start(&broker.bus, handler.clone());
    eventually("the second delivery", || async { Ok(handler.ids() == [broker.event_id.as_str()]) }).await
}

#[tokio::test]
async fn unknown_or_missing_name_is_an_error_without_effect() -> Result<()> {
    let broker = Broker::with_dead_letters().await?;
    for action in ["show", "retry", "drop"] {
        let output = broker.assay(&["dead-letter", action, "mistyped"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(text(&output.stderr).contains("id mistyped; `assay dead-letter list`"), "{output:?}");
    }
    assert!(broker.list().contains("scoring-worker.conversation-accepted: 2 dead letters\n"));
    let unknown = broker.assay(&["dead-letter", "list", "--queue", "mistyped"]);
    assert_eq!(unknown.status.code(), Some(1), "{unknown:?}");
    let without_ids = broker.assay(&["dead-letter", "drop"]);
    assert_eq!(without_ids.status.code(), Some(2), "{without_ids:?}");
    Ok(())
}

#[tokio::test]
async fn standalone_dead_events_are_listed_shown_retried_and_dropped() -> Result<()> {
    let standalone = Standalone::with_dead_events(3).await?;
    let ids = standalone.ids.clone();
    let list = standalone.succeed(&["dead-letter", "list"]);
    assert!(list.contains("ingest: 3 dead letters\n") && list.contains("export: 0 dead letters\n"), "{list}");
    assert!(ids.iter().all(|id| list.contains(id)), "{list}");
    assert!(list.contains("consumer rejected the event: unknown kind of author"), "{list}");
    assert!(!list.contains(&standalone.organization_id), "{list}");
    let shown = standalone.succeed(&["dead-letter", "show", &ids[0]]);
    assert!(shown.contains(&ids[0]) && shown.contains("specversion"), "{shown}");

    standalone.succeed(&["dead-letter", "retry", &ids[0]]);
    assert_eq!(standalone.pending_and_dead().await?, (1, 2));
    standalone.succeed(&["dead-letter", "drop", &ids[1]]);
    assert_eq!(standalone.pending_and_dead().await?, (1, 1));
    standalone.succeed(&["dead-letter", "retry", "--all", "--queue", "scoring"]);
    assert_eq!(standalone.pending_and_dead().await?, (1, 1));
    standalone.succeed(&["dead-letter", "retry", "--all"]);
    assert_eq!(standalone.pending_and_dead().await?, (2, 0));
    Ok(())
}

#[tokio::test]
async fn outbox_status_counts_pending_and_dead_events() -> Result<()> {
    let standalone = Standalone::with_dead_events(2).await?;
    standalone.succeed(&["dead-letter", "retry", &standalone.ids[0]]);
    let status = standalone.succeed(&["outbox", "status"]);
    let rows: Vec<Vec<&str>> = status.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["SERVICE", "PENDING", "OLDEST", "DEAD", "LAST", "ERROR"]);
    assert_eq!(rows[1], ["registry", "0", "-", "0", "-"]);
    // The age is two words, such as `0 s`.
    assert_eq!((rows[2][0], rows[2][1], rows[2][3], rows[2][4]), ("ingest", "1", "s", "1"), "{status}");
    assert_eq!((rows[3][0], rows[4][0]), ("scoring", "export"));
    Ok(())
}
