//! A conversation whose event becomes a dead letter has a failed evaluation, which a retry replaces.

use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result, ensure};
use assay_contracts::event::{ConversationAccepted, ConversationDeleted, EvaluationOutcome, Event, Topic};
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::tenant::Scope;
use assay_contracts::time::Timestamp;
use assay_messaging::{OutgoingEvent, PublishError};
use assay_platform::runtime::{new_id, now};
use assay_scoring_worker::SCHEMA;
use assay_testkit::{eventually, execute_on, on_both_databases};
use serde::{Deserialize, Serialize};

use crate::test_app::TestApp;
use crate::{by_ai, read};

on_both_databases! { TestApp {
    given_up_conversation_is_failed_until_a_retry_evaluates_it,
    evaluation_is_later_than_the_failure_that_it_replaces,
    event_is_retried_until_giving_up_is_recorded,
    evaluated_or_deleted_conversation_is_not_given_up,
    conversation_of_an_unreadable_event_is_failed,
} }

/// Restarts the role on a bus where the first failed attempt is the last. The accepted conversations show that the role consumes,
/// before and after the restart.
async fn without_retries(mut app: TestApp) -> Result<TestApp> {
    app.accept(&by_ai()).await?;
    app.limit_attempts(1)?;
    app.accept(&by_ai()).await?;
    Ok(app)
}

async fn given_up_conversation_is_failed_until_a_retry_evaluates_it(app: TestApp) -> Result<()> {
    let app = without_retries(app).await?;
    let before = app.progress(app.organization).await?;
    let accepted = app.store(&by_ai())?;
    let event = OutgoingEvent::new(new_id(), now(), &accepted)?;
    app.stub.has_broken_transcripts.store(true, Ordering::SeqCst);
    for _ in 0..2 {
        assert!(matches!(app.try_publish(&event).await, Err(PublishError::Rejected { .. })));
    }
    let failed = read(&app, accepted.ticket_id).await?;
    assert_eq!(failed["status"], "failed");
    let message = failed["error_message"].as_str().context("no message")?;
    assert!(message.contains("every attempt failed"), "{message}");
    eventually("the failure", || async { Ok(app.published(accepted.ticket_id)? == 1) }).await?;
    assert_eq!(app.progress(app.organization).await?, before + 1);

    app.stub.has_broken_transcripts.store(false, Ordering::SeqCst);
    for _ in 0..2 {
        app.publish(&event).await?;
    }
    assert_eq!(read(&app, accepted.ticket_id).await?["status"], "scored");
    eventually("the evaluation", || async { Ok(app.published(accepted.ticket_id)? == 2) }).await?;
    assert_eq!(app.progress(app.organization).await?, before + 2);
    let received = app.received_evaluations.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
    let of_ticket: Vec<_> =
        received.iter().filter(|evaluated| evaluated.ticket.id == accepted.ticket_id).collect();
    assert!(matches!(&of_ticket[0].outcome, EvaluationOutcome::Failed { .. }));
    assert!(matches!(&of_ticket[1].outcome, EvaluationOutcome::Evaluated { .. }));
    let order = |index: usize| (of_ticket[index].evaluated_at, of_ticket[index].evaluation_id);
    assert!(order(0) < order(1), "exports keep the newer one");
    assert_eq!(of_ticket[0].ticket, of_ticket[1].ticket);
    Ok(())
}

/// What another release might publish.
#[derive(Serialize, Deserialize)]
struct UnreadableAccepted {
    organization_id: OrganizationId,
    ticket_id: TicketId,
    accepted_at: String,
}

impl Event for UnreadableAccepted {
    const TOPIC: Topic = ConversationAccepted::TOPIC;

    fn organization_id(&self) -> OrganizationId {
        self.organization_id
    }
}

async fn conversation_of_an_unreadable_event_is_failed(app: TestApp) -> Result<()> {
    let accepted = app.store(&by_ai())?;
    let (organization_id, ticket_id) = (accepted.organization_id, accepted.ticket_id);
    let unreadable = UnreadableAccepted { organization_id, ticket_id, accepted_at: "today".to_owned() };
    let event = OutgoingEvent::new(new_id(), now(), &unreadable)?;
    let rejected =
        || async { Ok(matches!(app.try_publish(&event).await, Err(PublishError::Rejected { .. }))) };
    eventually("the dead letter", rejected).await?;
    assert_eq!(read(&app, ticket_id).await?["status"], "failed");
    app.publish(&OutgoingEvent::new(new_id(), now(), &accepted)?).await?;
    assert_eq!(read(&app, ticket_id).await?["status"], "scored");
    Ok(())
}

/// An evaluation may begin before the time of the failure and be committed after the failure.
async fn evaluation_is_later_than_the_failure_that_it_replaces(app: TestApp) -> Result<()> {
    let app = without_retries(app).await?;
    let accepted = app.store(&by_ai())?;
    let event = OutgoingEvent::new(new_id(), now(), &accepted)?;
    app.stub.has_broken_transcripts.store(true, Ordering::SeqCst);
    assert!(matches!(app.try_publish(&event).await, Err(PublishError::Rejected { .. })));
    let failed_at = now().plus_millis(3_600_000);
    stamp_failures(&app, failed_at).await?;
    app.stub.has_broken_transcripts.store(false, Ordering::SeqCst);
    app.publish(&event).await?;
    eventually("the evaluation", || async { Ok(app.published(accepted.ticket_id)? == 2) }).await?;
    let received = app.received_evaluations.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
    let evaluated = received.iter().rfind(|evaluated| evaluated.ticket.id == accepted.ticket_id);
    let evaluated = evaluated.context("no evaluation")?;
    assert!(matches!(&evaluated.outcome, EvaluationOutcome::Evaluated { .. }));
    assert_eq!(evaluated.evaluated_at, failed_at.plus_millis(1), "exports keep it");
    Ok(())
}

/// Sets the time of all failures.
async fn stamp_failures(app: &TestApp, time: Timestamp) -> Result<()> {
    let statement = format!("UPDATE evaluations SET created_at = {} WHERE given_up", time.as_millis());
    let changed = execute_on(&app.database.open(SCHEMA)?, statement).await?;
    ensure!(changed == 1, "nothing was given up");
    Ok(())
}

async fn event_is_retried_until_giving_up_is_recorded(app: TestApp) -> Result<()> {
    let app = without_retries(app).await?;
    let accepted = app.store(&by_ai())?;
    let event = OutgoingEvent::new(new_id(), now(), &accepted)?;
    app.stub.is_unavailable.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        assert!(matches!(app.try_publish(&event).await, Err(PublishError::Retry { .. })));
    }
    let id = accepted.ticket_id.to_string();
    assert_eq!(app.read(app.organization, Scope::Tickets, &id).await?.status(), 404);
    app.stub.is_unavailable.store(false, Ordering::SeqCst);
    app.publish(&event).await?;
    assert_eq!(read(&app, id).await?["status"], "scored");
    Ok(())
}

async fn evaluated_or_deleted_conversation_is_not_given_up(app: TestApp) -> Result<()> {
    let app = without_retries(app).await?;
    let (evaluated, event) = app.accept(&by_ai()).await?;
    let before = read(&app, evaluated.ticket_id).await?;
    let deleted_ticket = app.store(&by_ai())?;
    let deleted = ConversationDeleted {
        organization_id: app.organization,
        ticket_id: deleted_ticket.ticket_id,
        deleted_at: now(),
    };
    app.publish(&OutgoingEvent::new(new_id(), now(), &deleted)?).await?;
    let count = app.progress(app.organization).await?;
    app.stub.has_broken_transcripts.store(true, Ordering::SeqCst);
    let event_of_deleted = OutgoingEvent::new(new_id(), now(), &deleted_ticket)?;
    for event in [event, event_of_deleted] {
        assert!(matches!(app.try_publish(&event).await, Err(PublishError::Rejected { .. })));
    }
    assert_eq!(read(&app, evaluated.ticket_id).await?, before);
    let deleted_id = deleted_ticket.ticket_id.to_string();
    assert_eq!(app.read(app.organization, Scope::Tickets, &deleted_id).await?.status(), 404);
    assert_eq!(app.progress(app.organization).await?, count);
    Ok(())
}
