//! Conversations whose transcripts were removed because their period has passed.

use anyhow::{Context as _, Result};
use assay_contracts::event::{ConversationDeleted, ConversationsExpired, EvaluationOutcome, TicketFacts};
use assay_contracts::ids::TicketId;
use assay_contracts::tenant::Scope;
use assay_messaging::OutgoingEvent;
use assay_platform::runtime::{new_id, now};
use assay_testkit::{eventually, on_both_databases};

use crate::stage::Stage;
use crate::{by_ai, read};

on_both_databases! { Stage {
    what_was_never_evaluated_has_failed_and_says_why_and_the_rest_stays_as_it_is,
    an_acceptance_that_comes_later_changes_nothing,
} }

fn facts(stage: &Stage, ticket_id: TicketId) -> Result<TicketFacts> {
    let stored = stage.ingest.transcripts.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
    Ok(stored.get(&ticket_id).context("never stored")?.ticket.clone())
}

async fn expire(stage: &Stage, tickets: Vec<TicketFacts>) -> Result<OutgoingEvent> {
    let expired = ConversationsExpired { organization_id: stage.organization, tickets, expired_at: now() };
    let event = OutgoingEvent::new(new_id(), now(), &expired)?;
    stage.publish(&event).await?;
    Ok(event)
}

async fn what_was_never_evaluated_has_failed_and_says_why_and_the_rest_stays_as_it_is(
    stage: Stage,
) -> Result<()> {
    let (evaluated, _) = stage.accept(&by_ai()).await?;
    let before = read(&stage, evaluated.ticket_id).await?;
    let waiting = [stage.store(&by_ai())?, stage.store(&by_ai())?];
    let gone = stage.store(&by_ai())?;
    let deleted = ConversationDeleted {
        organization_id: stage.organization,
        ticket_id: gone.ticket_id,
        deleted_at: now(),
    };
    stage.publish(&OutgoingEvent::new(new_id(), now(), &deleted)?).await?;
    let all = [&evaluated, &waiting[0], &gone, &waiting[1]];
    let tickets = all.iter().map(|accepted| facts(&stage, accepted.ticket_id)).collect::<Result<_>>()?;
    let event = expire(&stage, tickets).await?;
    stage.publish(&event).await?;

    assert_eq!(read(&stage, evaluated.ticket_id).await?, before);
    let gone_id = gone.ticket_id.to_string();
    assert_eq!(stage.read(stage.organization, Scope::Tickets, &gone_id).await?.status(), 404);
    for accepted in &waiting {
        let evaluation = read(&stage, accepted.ticket_id).await?;
        assert_eq!(evaluation["status"], "failed");
        let message = evaluation["error_message"].as_str().context("no message")?;
        assert!(message.contains("before its transcript was removed"), "{message}");
        eventually("the news", || async { Ok(stage.told(accepted.ticket_id)? == 1) }).await?;
    }
    assert_eq!((stage.told(evaluated.ticket_id)?, stage.told(gone.ticket_id)?), (1, 0));
    assert_eq!(stage.progress(stage.organization).await?, 3);
    let heard = stage.heard.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
    let failed = heard.iter().find(|event| event.ticket.id == waiting[0].ticket_id).context("not told")?;
    assert_eq!(failed.ticket.external_id, "T-1");
    assert!(matches!(&failed.outcome, EvaluationOutcome::Failed { .. }));
    Ok(())
}

async fn an_acceptance_that_comes_later_changes_nothing(stage: Stage) -> Result<()> {
    let accepted = stage.store(&by_ai())?;
    expire(&stage, vec![facts(&stage, accepted.ticket_id)?]).await?;
    let first = read(&stage, accepted.ticket_id).await?;
    stage.publish(&OutgoingEvent::new(new_id(), now(), &accepted)?).await?;
    assert_eq!(read(&stage, accepted.ticket_id).await?, first);
    assert_eq!(stage.progress(stage.organization).await?, 1);
    Ok(())
}
