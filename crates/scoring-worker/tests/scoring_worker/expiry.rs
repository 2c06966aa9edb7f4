//! Conversations whose transcripts were removed at the end of the retention period.

use anyhow::{Context as _, Result};
use assay_contracts::event::{ConversationDeleted, ConversationsExpired, EvaluationOutcome, TicketFacts};
use assay_contracts::ids::TicketId;
use assay_contracts::tenant::Scope;
use assay_messaging::OutgoingEvent;
use assay_platform::runtime::{new_id, now};
use assay_testkit::{eventually, on_both_databases};

use crate::test_app::TestApp;
use crate::{by_ai, read};

on_both_databases! { TestApp {
    expiry_fails_only_unevaluated_conversations,
    late_acceptance_after_expiry_changes_nothing,
} }

fn facts(app: &TestApp, ticket_id: TicketId) -> Result<TicketFacts> {
    let stored = app.stub.transcripts.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
    Ok(stored.get(&ticket_id).context("never stored")?.ticket.clone())
}

async fn expire(app: &TestApp, tickets: Vec<TicketFacts>) -> Result<OutgoingEvent> {
    let expired = ConversationsExpired { organization_id: app.organization, tickets, expired_at: now() };
    let event = OutgoingEvent::new(new_id(), now(), &expired)?;
    app.publish(&event).await?;
    Ok(event)
}

async fn expiry_fails_only_unevaluated_conversations(app: TestApp) -> Result<()> {
    let (evaluated, _) = app.accept(&by_ai()).await?;
    let before = read(&app, evaluated.ticket_id).await?;
    let waiting = [app.store(&by_ai())?, app.store(&by_ai())?];
    let deleted_ticket = app.store(&by_ai())?;
    let deleted = ConversationDeleted {
        organization_id: app.organization,
        ticket_id: deleted_ticket.ticket_id,
        deleted_at: now(),
    };
    app.publish(&OutgoingEvent::new(new_id(), now(), &deleted)?).await?;
    let all = [&evaluated, &waiting[0], &deleted_ticket, &waiting[1]];
    let tickets = all.iter().map(|accepted| facts(&app, accepted.ticket_id)).collect::<Result<_>>()?;
    let event = expire(&app, tickets).await?;
    app.publish(&event).await?;

    assert_eq!(read(&app, evaluated.ticket_id).await?, before);
    let deleted_id = deleted_ticket.ticket_id.to_string();
    assert_eq!(app.read(app.organization, Scope::Tickets, &deleted_id).await?.status(), 404);
    for accepted in &waiting {
        let evaluation = read(&app, accepted.ticket_id).await?;
        assert_eq!(evaluation["status"], "failed");
        let message = evaluation["error_message"].as_str().context("no message")?;
        assert!(message.contains("before its transcript was removed"), "{message}");
        eventually("the event", || async { Ok(app.published(accepted.ticket_id)? == 1) }).await?;
    }
    assert_eq!((app.published(evaluated.ticket_id)?, app.published(deleted_ticket.ticket_id)?), (1, 0));
    assert_eq!(app.progress(app.organization).await?, 3);
    let received = app.received_evaluations.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
    let failed =
        received.iter().find(|event| event.ticket.id == waiting[0].ticket_id).context("not published")?;
    assert_eq!(failed.ticket.external_id, "T-1");
    assert!(matches!(&failed.outcome, EvaluationOutcome::Failed { .. }));
    Ok(())
}

async fn late_acceptance_after_expiry_changes_nothing(app: TestApp) -> Result<()> {
    let accepted = app.store(&by_ai())?;
    expire(&app, vec![facts(&app, accepted.ticket_id)?]).await?;
    let first = read(&app, accepted.ticket_id).await?;
    app.publish(&OutgoingEvent::new(new_id(), now(), &accepted)?).await?;
    assert_eq!(read(&app, accepted.ticket_id).await?, first);
    assert_eq!(app.progress(app.organization).await?, 1);
    Ok(())
}
