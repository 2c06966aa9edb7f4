//! Integration tests of the role, on both databases.

mod deletions;
mod expiry;
mod giving_up;
mod judge;
mod notifications;
mod retention;
mod test_app;

use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result};
use assay_contracts::event::EvaluationOutcome;
use assay_contracts::tenant::Scope;
use assay_messaging::OutgoingEvent;
use assay_messaging::PublishError;
use assay_platform::runtime::{new_id, now};
use assay_testkit::{eventually, on_both_databases};
use serde_json::{Value, json};

use crate::test_app::TestApp;

on_both_databases! { TestApp {
    accepted_conversation_is_evaluated_and_readable,
    conversation_without_ai_is_not_applicable,
    redelivered_event_changes_and_publishes_nothing,
    second_event_for_the_same_ticket_changes_nothing,
    concurrent_duplicates_are_evaluated_and_published_once,
    evaluation_is_retried_while_ingest_is_unavailable,
    missing_transcript_is_retried_without_blocking_others,
    transcripts_are_read_page_by_page,
    evaluation_is_hidden_from_other_organizations_and_scopes,
    progress_counts_each_evaluation_once,
} }

fn body(author: Value) -> Value {
    let said = |id: &str, at: i64, author: Value, content: &str| json!({"external_id": id, "timestamp": at, "author": author, "content": content});
    let customer = json!({"type": "contact", "external_id": "ann"});
    json!({"ticket_id": "T-1", "messages": [
        said("m-1", 1_763_600_000_000, customer.clone(), "Please cancel order 5521."),
        said("m-2", 1_763_600_030_000, author, "I have cancelled order 5521, the money is on its way."),
        said("m-3", 1_763_600_060_000, customer, "Perfect, that solved it. Thank you!"),
    ]})
}

fn by_ai() -> Value {
    body(json!({"type": "ai", "external_id": "bot"}))
}

async fn read(app: &TestApp, ticket_id: impl ToString) -> Result<Value> {
    let response = app.read(app.organization, Scope::Tickets, &ticket_id.to_string()).await?;
    Ok(response.error_for_status()?.json().await?)
}

async fn accepted_conversation_is_evaluated_and_readable(app: TestApp) -> Result<()> {
    let (accepted, _) = app.accept(&by_ai()).await?;
    let evaluation = read(&app, accepted.ticket_id).await?;
    assert_eq!(evaluation["status"], "scored");
    assert_eq!(evaluation["ticket_id"], accepted.ticket_id.to_string());
    assert_eq!(evaluation["external_ticket_id"], "T-1");
    assert_eq!(evaluation["resolution"]["status"], "resolved");
    assert!(evaluation["axis"]["score"].as_f64().context("no score")? >= 4.0);
    eventually("the event", || async { Ok(app.published(accepted.ticket_id)? == 1) }).await?;
    let received = app.received_evaluations.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
    assert_eq!(received[0].evaluation_id.to_string(), evaluation["id"].as_str().context("no id")?);
    assert!(matches!(&received[0].outcome, EvaluationOutcome::Evaluated { .. }));
    Ok(())
}

async fn conversation_without_ai_is_not_applicable(app: TestApp) -> Result<()> {
    let (accepted, _) = app.accept(&body(json!({"type": "teammate", "external_id": "bob"}))).await?;
    let evaluation = read(&app, accepted.ticket_id).await?;
    assert_eq!(evaluation["status"], "not_applicable");
    assert_eq!(evaluation["axis"], Value::Null);
    assert_eq!(evaluation["charge"]["assessment"], "not_applicable");
    Ok(())
}

async fn redelivered_event_changes_and_publishes_nothing(app: TestApp) -> Result<()> {
    let (accepted, event) = app.accept(&by_ai()).await?;
    let first = read(&app, accepted.ticket_id).await?;
    app.publish(&event).await?;
    assert_eq!(read(&app, accepted.ticket_id).await?, first);
    assert_published_once(&app, accepted.ticket_id).await
}

async fn second_event_for_the_same_ticket_changes_nothing(app: TestApp) -> Result<()> {
    let (accepted, _) = app.accept(&by_ai()).await?;
    let first = read(&app, accepted.ticket_id).await?;
    app.publish(&OutgoingEvent::new(new_id(), now(), &accepted)?).await?;
    assert_eq!(read(&app, accepted.ticket_id).await?, first);
    assert_published_once(&app, accepted.ticket_id).await
}

async fn concurrent_duplicates_are_evaluated_and_published_once(app: TestApp) -> Result<()> {
    // Wait for the consumer.
    app.accept(&by_ai()).await?;
    let accepted = app.store(&by_ai())?;
    let event = OutgoingEvent::new(new_id(), now(), &accepted)?;
    let results = app.publish_together(&vec![event; 8]).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(app.progress(app.organization).await?, 2);
    assert_published_once(&app, accepted.ticket_id).await
}

/// Publishes another event and waits for it: events are published in order, so a duplicate would have been published before.
async fn assert_published_once(app: &TestApp, ticket_id: assay_contracts::ids::TicketId) -> Result<()> {
    let (last, _) = app.accept(&by_ai()).await?;
    eventually("the last event", || async { Ok(app.published(last.ticket_id)? == 1) }).await?;
    assert_eq!(app.published(ticket_id)?, 1);
    Ok(())
}

async fn evaluation_is_retried_while_ingest_is_unavailable(app: TestApp) -> Result<()> {
    app.accept(&by_ai()).await?;
    app.stub.is_unavailable.store(true, Ordering::SeqCst);
    let accepted = app.store(&by_ai())?;
    let event = OutgoingEvent::new(new_id(), now(), &accepted)?;
    assert!(matches!(app.try_publish(&event).await, Err(PublishError::Retry { .. })));
    let id = accepted.ticket_id.to_string();
    assert_eq!(app.read(app.organization, Scope::Tickets, &id).await?.status(), 404);
    app.stub.is_unavailable.store(false, Ordering::SeqCst);
    app.publish(&event).await?;
    assert_eq!(read(&app, id).await?["status"], "scored");
    Ok(())
}

async fn missing_transcript_is_retried_without_blocking_others(app: TestApp) -> Result<()> {
    app.accept(&by_ai()).await?;
    let missing = app.store(&by_ai())?;
    app.stub.transcripts.lock().map_err(|_| anyhow::anyhow!("poisoned"))?.remove(&missing.ticket_id);
    let there = app.store(&by_ai())?;
    let events = [&missing, &there].map(|accepted| OutgoingEvent::new(new_id(), now(), accepted));
    let [missing_event, event] = events;
    let results = app.publish_together(&[missing_event?, event?]).await;
    assert!(
        matches!(&results[0], Err(PublishError::Retry { reason }) if reason.contains("no readable transcript"))
    );
    assert!(results[1].is_ok(), "{results:?}");
    assert_eq!(read(&app, there.ticket_id).await?["status"], "scored");
    Ok(())
}

async fn transcripts_are_read_page_by_page(app: TestApp) -> Result<()> {
    app.accept(&by_ai()).await?;
    // The stub of ingest returns at most two transcripts for each call.
    let accepted: Vec<_> = (0..5).map(|_| app.store(&by_ai())).collect::<Result<_>>()?;
    let events: Vec<_> = accepted
        .iter()
        .map(|accepted| Ok(OutgoingEvent::new(new_id(), now(), accepted)?))
        .collect::<Result<_>>()?;
    for result in app.publish_together(&events).await {
        result?;
    }
    for accepted in accepted {
        assert_eq!(read(&app, accepted.ticket_id).await?["status"], "scored");
    }
    Ok(())
}

async fn evaluation_is_hidden_from_other_organizations_and_scopes(app: TestApp) -> Result<()> {
    let (accepted, _) = app.accept(&by_ai()).await?;
    let id = accepted.ticket_id.to_string();
    assert_eq!(app.read(new_id(), Scope::Tickets, &id).await?.status(), 404);
    assert_eq!(app.read(app.organization, Scope::Exports, &id).await?.status(), 403);
    assert_eq!(app.read(app.organization, Scope::Tickets, "not-an-id").await?.status(), 404);
    Ok(())
}

async fn progress_counts_each_evaluation_once(app: TestApp) -> Result<()> {
    assert_eq!(app.progress(app.organization).await?, 0);
    let (_, event) = app.accept(&by_ai()).await?;
    let (accepted, _) = app.accept(&by_ai()).await?;
    app.publish(&event).await?;
    app.publish(&OutgoingEvent::new(new_id(), now(), &accepted)?).await?;
    assert_eq!(app.progress(app.organization).await?, 2);
    assert_eq!(app.progress(new_id()).await?, 0);
    Ok(())
}
