//! The role as its neighbours see it, on both databases.

mod announcements;
mod deletions;
mod expiries;
mod judged;
mod retention;
mod stage;

use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result};
use assay_contracts::event::EvaluationOutcome;
use assay_contracts::tenant::Scope;
use assay_messaging::OutgoingEvent;
use assay_messaging::PublishError;
use assay_platform::runtime::{new_id, now};
use assay_testkit::{eventually, on_both_databases};
use serde_json::{Value, json};

use crate::stage::Stage;

on_both_databases! { Stage {
    an_accepted_conversation_is_evaluated_and_can_be_read,
    a_conversation_without_an_ai_is_not_applicable_and_has_no_axis,
    a_redelivered_event_changes_nothing_and_tells_nobody,
    a_second_event_for_the_same_ticket_changes_nothing,
    an_event_that_comes_twice_at_once_is_evaluated_and_told_once,
    an_evaluation_waits_while_ingest_is_away,
    a_missing_transcript_is_asked_for_again_and_keeps_no_other_from_being_evaluated,
    transcripts_that_do_not_fit_into_one_answer_are_asked_for_again,
    another_organization_and_another_scope_see_nothing,
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

async fn read(stage: &Stage, ticket_id: impl ToString) -> Result<Value> {
    let response = stage.read(stage.organization, Scope::Tickets, &ticket_id.to_string()).await?;
    Ok(response.error_for_status()?.json().await?)
}

async fn an_accepted_conversation_is_evaluated_and_can_be_read(stage: Stage) -> Result<()> {
    let (accepted, _) = stage.accept(&by_ai()).await?;
    let evaluation = read(&stage, accepted.ticket_id).await?;
    assert_eq!(evaluation["status"], "scored");
    assert_eq!(evaluation["ticket_id"], accepted.ticket_id.to_string());
    assert_eq!(evaluation["external_ticket_id"], "T-1");
    assert_eq!(evaluation["resolution"]["status"], "resolved");
    assert!(evaluation["axis"]["score"].as_f64().context("no score")? >= 4.0);
    eventually("the event", || async { Ok(stage.told(accepted.ticket_id)? == 1) }).await?;
    let heard = stage.heard.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
    assert_eq!(heard[0].evaluation_id.to_string(), evaluation["id"].as_str().context("no id")?);
    assert!(matches!(&heard[0].outcome, EvaluationOutcome::Evaluated { .. }));
    Ok(())
}

async fn a_conversation_without_an_ai_is_not_applicable_and_has_no_axis(stage: Stage) -> Result<()> {
    let (accepted, _) = stage.accept(&body(json!({"type": "teammate", "external_id": "bob"}))).await?;
    let evaluation = read(&stage, accepted.ticket_id).await?;
    assert_eq!(evaluation["status"], "not_applicable");
    assert_eq!(evaluation["axis"], Value::Null);
    assert_eq!(evaluation["charge"]["assessment"], "not_applicable");
    Ok(())
}

async fn a_redelivered_event_changes_nothing_and_tells_nobody(stage: Stage) -> Result<()> {
    let (accepted, event) = stage.accept(&by_ai()).await?;
    let first = read(&stage, accepted.ticket_id).await?;
    stage.publish(&event).await?;
    assert_eq!(read(&stage, accepted.ticket_id).await?, first);
    told_once_when_another_one_is_told(&stage, accepted.ticket_id).await
}

async fn a_second_event_for_the_same_ticket_changes_nothing(stage: Stage) -> Result<()> {
    let (accepted, _) = stage.accept(&by_ai()).await?;
    let first = read(&stage, accepted.ticket_id).await?;
    stage.publish(&OutgoingEvent::new(new_id(), now(), &accepted)?).await?;
    assert_eq!(read(&stage, accepted.ticket_id).await?, first);
    told_once_when_another_one_is_told(&stage, accepted.ticket_id).await
}

async fn an_event_that_comes_twice_at_once_is_evaluated_and_told_once(stage: Stage) -> Result<()> {
    // So that a consumer is there.
    stage.accept(&by_ai()).await?;
    let accepted = stage.store(&by_ai())?;
    let event = OutgoingEvent::new(new_id(), now(), &accepted)?;
    let results = stage.publish_together(&vec![event; 8]).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(stage.progress(stage.organization).await?, 2);
    told_once_when_another_one_is_told(&stage, accepted.ticket_id).await
}

/// Events are told in the order of their making here, so that one made later bounds the waiting.
async fn told_once_when_another_one_is_told(
    stage: &Stage,
    ticket_id: assay_contracts::ids::TicketId,
) -> Result<()> {
    let (last, _) = stage.accept(&by_ai()).await?;
    eventually("the last event", || async { Ok(stage.told(last.ticket_id)? == 1) }).await?;
    assert_eq!(stage.told(ticket_id)?, 1);
    Ok(())
}

async fn an_evaluation_waits_while_ingest_is_away(stage: Stage) -> Result<()> {
    stage.accept(&by_ai()).await?;
    stage.ingest.away.store(true, Ordering::SeqCst);
    let accepted = stage.store(&by_ai())?;
    let event = OutgoingEvent::new(new_id(), now(), &accepted)?;
    assert!(matches!(stage.try_publish(&event).await, Err(PublishError::Retry { .. })));
    let id = accepted.ticket_id.to_string();
    assert_eq!(stage.read(stage.organization, Scope::Tickets, &id).await?.status(), 404);
    stage.ingest.away.store(false, Ordering::SeqCst);
    stage.publish(&event).await?;
    assert_eq!(read(&stage, id).await?["status"], "scored");
    Ok(())
}

async fn a_missing_transcript_is_asked_for_again_and_keeps_no_other_from_being_evaluated(
    stage: Stage,
) -> Result<()> {
    stage.accept(&by_ai()).await?;
    let missing = stage.store(&by_ai())?;
    stage.ingest.transcripts.lock().map_err(|_| anyhow::anyhow!("poisoned"))?.remove(&missing.ticket_id);
    let there = stage.store(&by_ai())?;
    let events = [&missing, &there].map(|accepted| OutgoingEvent::new(new_id(), now(), accepted));
    let [missing_event, event] = events;
    let results = stage.publish_together(&[missing_event?, event?]).await;
    assert!(
        matches!(&results[0], Err(PublishError::Retry { reason }) if reason.contains("no readable transcript"))
    );
    assert!(results[1].is_ok(), "{results:?}");
    assert_eq!(read(&stage, there.ticket_id).await?["status"], "scored");
    Ok(())
}

async fn transcripts_that_do_not_fit_into_one_answer_are_asked_for_again(stage: Stage) -> Result<()> {
    stage.accept(&by_ai()).await?;
    let accepted: Vec<_> = (0..5).map(|_| stage.store(&by_ai())).collect::<Result<_>>()?;
    let events: Vec<_> = accepted
        .iter()
        .map(|accepted| Ok(OutgoingEvent::new(new_id(), now(), accepted)?))
        .collect::<Result<_>>()?;
    for result in stage.publish_together(&events).await {
        result?;
    }
    for accepted in accepted {
        assert_eq!(read(&stage, accepted.ticket_id).await?["status"], "scored");
    }
    Ok(())
}

async fn another_organization_and_another_scope_see_nothing(stage: Stage) -> Result<()> {
    let (accepted, _) = stage.accept(&by_ai()).await?;
    let id = accepted.ticket_id.to_string();
    assert_eq!(stage.read(new_id(), Scope::Tickets, &id).await?.status(), 404);
    assert_eq!(stage.read(stage.organization, Scope::Exports, &id).await?.status(), 403);
    assert_eq!(stage.read(stage.organization, Scope::Tickets, "not-an-id").await?.status(), 404);
    Ok(())
}

async fn progress_counts_each_evaluation_once(stage: Stage) -> Result<()> {
    assert_eq!(stage.progress(stage.organization).await?, 0);
    let (_, event) = stage.accept(&by_ai()).await?;
    let (accepted, _) = stage.accept(&by_ai()).await?;
    stage.publish(&event).await?;
    stage.publish(&OutgoingEvent::new(new_id(), now(), &accepted)?).await?;
    assert_eq!(stage.progress(stage.organization).await?, 2);
    assert_eq!(stage.progress(new_id()).await?, 0);
    Ok(())
}
