//! Deletion of tickets, in any order of events.

use anyhow::{Result, anyhow};
use assay_contracts::event::{ConversationAccepted, ConversationDeleted};
use assay_contracts::ids::TicketId;
use assay_contracts::tenant::Scope;
use assay_messaging::{OutgoingEvent, PublishError};
use assay_platform::runtime::{new_id, now};
use assay_testkit::{eventually, on_both_databases};

use crate::test_app::TestApp;
use crate::{by_ai, read};

on_both_databases! { TestApp {
    deletion_removes_the_evaluation_and_is_published,
    deletion_wins_in_every_order_of_events,
    concurrent_acceptance_and_deletion_leave_no_evaluation,
    event_of_a_ticket_deleted_in_ingest_is_acknowledged,
    event_of_an_evaluated_ticket_needs_no_transcript,
    deletion_by_another_organization_changes_nothing,
    unreadable_transcript_fails_only_on_the_last_attempt,
    tombstones_are_pruned_after_their_retention,
} }

fn deleted(app: &TestApp, ticket_id: TicketId) -> ConversationDeleted {
    ConversationDeleted { organization_id: app.organization, ticket_id, deleted_at: now() }
}

fn outgoing(deleted: &ConversationDeleted) -> Result<OutgoingEvent> {
    Ok(OutgoingEvent::new(new_id(), now(), deleted)?)
}

async fn status(app: &TestApp, ticket_id: TicketId) -> Result<u16> {
    let id = ticket_id.to_string();
    Ok(app.read(app.organization, Scope::Tickets, &id).await?.status().as_u16())
}

async fn deletion_removes_the_evaluation_and_is_published(app: TestApp) -> Result<()> {
    let (kept, _) = app.accept(&by_ai()).await?;
    let (accepted, _) = app.accept(&by_ai()).await?;
    app.publish(&outgoing(&deleted(&app, accepted.ticket_id))?).await?;
    assert_eq!(status(&app, accepted.ticket_id).await?, 404);
    assert_eq!(read(&app, kept.ticket_id).await?["status"], "scored");
    eventually("the event", || async { Ok(app.published_deletions(accepted.ticket_id)? == 1) }).await?;
    let document = app.role_store()?.find(app.organization, accepted.ticket_id).await?;
    assert_eq!(document, None);
    Ok(())
}

/// `a`: an acceptance, `A`: the same in another event; `d` and `D`: the deletion.
const ORDERS: [&str; 10] = ["ad", "da", "aad", "add", "dad", "ada", "dAaD", "adAD", "aAdD", "DdAa"];

async fn deletion_wins_in_every_order_of_events(app: TestApp) -> Result<()> {
    let mut tickets = Vec::new();
    for order in ORDERS {
        let accepted = app.store(&by_ai())?;
        let deleted = deleted(&app, accepted.ticket_id);
        let acceptances = two_events(&accepted)?;
        let deletions = [outgoing(&deleted)?, outgoing(&deleted)?];
        for event in order.chars() {
            app.publish(match event {
                'a' => &acceptances[0],
                'A' => &acceptances[1],
                'd' => &deletions[0],
                _ => &deletions[1],
            })
            .await?;
        }
        assert_eq!(status(&app, accepted.ticket_id).await?, 404, "{order}");
        tickets.push((order, accepted.ticket_id));
    }
    let (last, _) = app.accept(&by_ai()).await?;
    eventually("the last event", || async { Ok(app.published(last.ticket_id)? == 1) }).await?;
    let mut evaluated = 1;
    for (order, ticket) in tickets {
        let published_evaluation = usize::from(order.to_lowercase().starts_with('a'));
        assert_eq!(app.published(ticket)?, published_evaluation, "{order}");
        let deletions = usize::from(order.contains('d')) + usize::from(order.contains('D'));
        eventually("the event", || async { Ok(app.published_deletions(ticket)? == deletions) }).await?;
        evaluated += i64::try_from(published_evaluation)?;
    }
    // The progress equals the number of published evaluations.
    assert_eq!(app.progress(app.organization).await?, evaluated);
    Ok(())
}

fn two_events(accepted: &ConversationAccepted) -> Result<[OutgoingEvent; 2]> {
    let event = || OutgoingEvent::new(new_id(), now(), accepted);
    Ok([event()?, event()?])
}

async fn concurrent_acceptance_and_deletion_leave_no_evaluation(app: TestApp) -> Result<()> {
    app.accept(&by_ai()).await?;
    let mut tickets = Vec::new();
    let mut events = Vec::new();
    for number in 0..24 {
        let accepted = app.store(&by_ai())?;
        let mut pair =
            [OutgoingEvent::new(new_id(), now(), &accepted)?, outgoing(&deleted(&app, accepted.ticket_id))?];
        if number % 2 == 0 {
            pair.reverse();
        }
        events.extend(pair);
        tickets.push(accepted.ticket_id);
    }
    let results = app.publish_together(&events).await;
    for (event, result) in events.iter().zip(results) {
        if result.is_err() {
            app.publish(event).await?;
        }
    }
    for ticket in tickets {
        assert_eq!(status(&app, ticket).await?, 404);
        eventually("the event", || async { Ok(app.published_deletions(ticket)? == 1) }).await?;
    }
    let counted = || async { Ok(app.progress(app.organization).await? == published_total(&app)?) };
    eventually("every counted evaluation to be published", counted).await
}

fn published_total(app: &TestApp) -> Result<i64> {
    Ok(i64::try_from(app.received_evaluations.lock().map_err(|_| anyhow!("poisoned"))?.len())?)
}

async fn event_of_a_ticket_deleted_in_ingest_is_acknowledged(app: TestApp) -> Result<()> {
    app.accept(&by_ai()).await?;
    let accepted = app.store(&by_ai())?;
    app.stub.transcripts.lock().map_err(|_| anyhow!("poisoned"))?.remove(&accepted.ticket_id);
    app.stub.deleted.lock().map_err(|_| anyhow!("poisoned"))?.insert(accepted.ticket_id);
    app.try_publish(&OutgoingEvent::new(new_id(), now(), &accepted)?).await?;
    assert_eq!(status(&app, accepted.ticket_id).await?, 404);
    Ok(())
}

async fn event_of_an_evaluated_ticket_needs_no_transcript(app: TestApp) -> Result<()> {
    let (accepted, _) = app.accept(&by_ai()).await?;
    app.stub.transcripts.lock().map_err(|_| anyhow!("poisoned"))?.remove(&accepted.ticket_id);
    app.try_publish(&OutgoingEvent::new(new_id(), now(), &accepted)?).await?;
    assert_eq!(read(&app, accepted.ticket_id).await?["status"], "scored");
    Ok(())
}

async fn deletion_by_another_organization_changes_nothing(app: TestApp) -> Result<()> {
    let (accepted, _) = app.accept(&by_ai()).await?;
    let foreign = ConversationDeleted { organization_id: new_id(), ..deleted(&app, accepted.ticket_id) };
    app.publish(&outgoing(&foreign)?).await?;
    assert_eq!(read(&app, accepted.ticket_id).await?["status"], "scored");
    Ok(())
}

async fn unreadable_transcript_fails_only_on_the_last_attempt(mut app: TestApp) -> Result<()> {
    app.accept(&by_ai()).await?;
    let accepted = app.store(&by_ai())?;
    app.stub.unreadable.lock().map_err(|_| anyhow!("poisoned"))?.insert(accepted.ticket_id);
    let event = OutgoingEvent::new(new_id(), now(), &accepted)?;
    let first = app.try_publish(&event).await;
    assert!(matches!(&first, Err(PublishError::Retry { .. })), "{first:?}");
    app.limit_attempts(1)?;
    app.publish(&event).await?;
    let evaluation = read(&app, accepted.ticket_id).await?;
    assert_eq!(evaluation["status"], "failed");
    let message = evaluation["error_message"].as_str().unwrap_or_default();
    assert!(message.contains("stored transcript cannot be read"), "{message}");
    eventually("the event", || async { Ok(app.published(accepted.ticket_id)? == 1) }).await
}

async fn tombstones_are_pruned_after_their_retention(app: TestApp) -> Result<()> {
    let (old, young): (TicketId, TicketId) = (new_id(), new_id());
    let days_ago = |days: i64| now().plus_millis(-days * 24 * 60 * 60 * 1_000);
    for (ticket, deleted_at) in [(young, days_ago(89)), (old, days_ago(91))] {
        let deleted = ConversationDeleted { deleted_at, ..deleted(&app, ticket) };
        app.publish(&outgoing(&deleted)?).await?;
    }
    let store = app.role_store()?;
    let pruned = || async { Ok(!store.finished(vec![old]).await?.contains(&old)) };
    eventually("the old tombstone to be pruned", pruned).await?;
    assert!(store.finished(vec![young]).await?.contains(&young));
    Ok(())
}
