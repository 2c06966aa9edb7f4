//! Deleted tickets, whatever comes when.

use anyhow::{Result, anyhow};
use assay_contracts::event::{ConversationAccepted, ConversationDeleted};
use assay_contracts::ids::TicketId;
use assay_contracts::tenant::Scope;
use assay_messaging::{OutgoingEvent, PublishError};
use assay_platform::runtime::{new_id, now};
use assay_testkit::{eventually, on_both_databases};

use crate::stage::Stage;
use crate::{by_ai, read};

on_both_databases! { Stage {
    a_deleted_ticket_loses_its_evaluation_and_the_others_are_told,
    in_every_order_of_events_nothing_is_left_and_everything_is_counted,
    events_that_come_together_leave_nothing_either,
    an_event_about_a_ticket_that_ingest_deleted_is_settled_at_once,
    an_event_about_a_ticket_that_has_its_evaluation_needs_no_transcript,
    another_organization_deletes_nothing,
    a_transcript_that_cannot_be_read_fails_with_the_last_attempt_and_not_before,
    deletions_are_forgotten_after_their_time,
} }

fn deleted(stage: &Stage, ticket_id: TicketId) -> ConversationDeleted {
    ConversationDeleted { organization_id: stage.organization, ticket_id, deleted_at: now() }
}

fn outgoing(deleted: &ConversationDeleted) -> Result<OutgoingEvent> {
    Ok(OutgoingEvent::new(new_id(), now(), deleted)?)
}

async fn status(stage: &Stage, ticket_id: TicketId) -> Result<u16> {
    let id = ticket_id.to_string();
    Ok(stage.read(stage.organization, Scope::Tickets, &id).await?.status().as_u16())
}

async fn a_deleted_ticket_loses_its_evaluation_and_the_others_are_told(stage: Stage) -> Result<()> {
    let (kept, _) = stage.accept(&by_ai()).await?;
    let (accepted, _) = stage.accept(&by_ai()).await?;
    stage.publish(&outgoing(&deleted(&stage, accepted.ticket_id))?).await?;
    assert_eq!(status(&stage, accepted.ticket_id).await?, 404);
    assert_eq!(read(&stage, kept.ticket_id).await?["status"], "scored");
    eventually("the news", || async { Ok(stage.told_deleted(accepted.ticket_id)? == 1) }).await?;
    let document = stage.store_of_role()?.find(stage.organization, accepted.ticket_id).await?;
    assert_eq!(document, None);
    Ok(())
}

/// `a`: the event of the acceptance, `A`: the same in another event, `d` and `D`: likewise the deletion.
const ORDERS: [&str; 10] = ["ad", "da", "aad", "add", "dad", "ada", "dAaD", "adAD", "aAdD", "DdAa"];

async fn in_every_order_of_events_nothing_is_left_and_everything_is_counted(stage: Stage) -> Result<()> {
    let mut tickets = Vec::new();
    for order in ORDERS {
        let accepted = stage.store(&by_ai())?;
        let deleted = deleted(&stage, accepted.ticket_id);
        let acceptances = two_events(&accepted)?;
        let deletions = [outgoing(&deleted)?, outgoing(&deleted)?];
        for event in order.chars() {
            stage
                .publish(match event {
                    'a' => &acceptances[0],
                    'A' => &acceptances[1],
                    'd' => &deletions[0],
                    _ => &deletions[1],
                })
                .await?;
        }
        assert_eq!(status(&stage, accepted.ticket_id).await?, 404, "{order}");
        tickets.push((order, accepted.ticket_id));
    }
    let (last, _) = stage.accept(&by_ai()).await?;
    eventually("the last event", || async { Ok(stage.told(last.ticket_id)? == 1) }).await?;
    let mut evaluated = 1;
    for (order, ticket) in tickets {
        let told_of_evaluation = usize::from(order.to_lowercase().starts_with('a'));
        assert_eq!(stage.told(ticket)?, told_of_evaluation, "{order}");
        let deletions = usize::from(order.contains('d')) + usize::from(order.contains('D'));
        eventually("the news", || async { Ok(stage.told_deleted(ticket)? == deletions) }).await?;
        evaluated += i64::try_from(told_of_evaluation)?;
    }
    // What others wait for is what they are told.
    assert_eq!(stage.progress(stage.organization).await?, evaluated);
    Ok(())
}

fn two_events(accepted: &ConversationAccepted) -> Result<[OutgoingEvent; 2]> {
    let event = || OutgoingEvent::new(new_id(), now(), accepted);
    Ok([event()?, event()?])
}

async fn events_that_come_together_leave_nothing_either(stage: Stage) -> Result<()> {
    stage.accept(&by_ai()).await?;
    let mut tickets = Vec::new();
    let mut events = Vec::new();
    for number in 0..24 {
        let accepted = stage.store(&by_ai())?;
        let mut pair = [
            OutgoingEvent::new(new_id(), now(), &accepted)?,
            outgoing(&deleted(&stage, accepted.ticket_id))?,
        ];
        if number % 2 == 0 {
            pair.reverse();
        }
        events.extend(pair);
        tickets.push(accepted.ticket_id);
    }
    let refused = stage.publish_together(&events).await;
    for (event, result) in events.iter().zip(refused) {
        if result.is_err() {
            stage.publish(event).await?;
        }
    }
    for ticket in tickets {
        assert_eq!(status(&stage, ticket).await?, 404);
        eventually("the news", || async { Ok(stage.told_deleted(ticket)? == 1) }).await?;
    }
    let counted = || async { Ok(stage.progress(stage.organization).await? == told_in_all(&stage)?) };
    eventually("every evaluation that counts to be told of", counted).await
}

fn told_in_all(stage: &Stage) -> Result<i64> {
    Ok(i64::try_from(stage.heard.lock().map_err(|_| anyhow!("poisoned"))?.len())?)
}

async fn an_event_about_a_ticket_that_ingest_deleted_is_settled_at_once(stage: Stage) -> Result<()> {
    stage.accept(&by_ai()).await?;
    let accepted = stage.store(&by_ai())?;
    stage.ingest.transcripts.lock().map_err(|_| anyhow!("poisoned"))?.remove(&accepted.ticket_id);
    stage.ingest.deleted.lock().map_err(|_| anyhow!("poisoned"))?.insert(accepted.ticket_id);
    stage.try_publish(&OutgoingEvent::new(new_id(), now(), &accepted)?).await?;
    assert_eq!(status(&stage, accepted.ticket_id).await?, 404);
    Ok(())
}

async fn an_event_about_a_ticket_that_has_its_evaluation_needs_no_transcript(stage: Stage) -> Result<()> {
    let (accepted, _) = stage.accept(&by_ai()).await?;
    stage.ingest.transcripts.lock().map_err(|_| anyhow!("poisoned"))?.remove(&accepted.ticket_id);
    stage.try_publish(&OutgoingEvent::new(new_id(), now(), &accepted)?).await?;
    assert_eq!(read(&stage, accepted.ticket_id).await?["status"], "scored");
    Ok(())
}

async fn another_organization_deletes_nothing(stage: Stage) -> Result<()> {
    let (accepted, _) = stage.accept(&by_ai()).await?;
    let foreign = ConversationDeleted { organization_id: new_id(), ..deleted(&stage, accepted.ticket_id) };
    stage.publish(&outgoing(&foreign)?).await?;
    assert_eq!(read(&stage, accepted.ticket_id).await?["status"], "scored");
    Ok(())
}

async fn a_transcript_that_cannot_be_read_fails_with_the_last_attempt_and_not_before(
    mut stage: Stage,
) -> Result<()> {
    stage.accept(&by_ai()).await?;
    let accepted = stage.store(&by_ai())?;
    stage.ingest.unreadable.lock().map_err(|_| anyhow!("poisoned"))?.insert(accepted.ticket_id);
    let event = OutgoingEvent::new(new_id(), now(), &accepted)?;
    let first = stage.try_publish(&event).await;
    assert!(matches!(&first, Err(PublishError::Retry { .. })), "{first:?}");
    stage.stop_consuming();
    stage.max_attempts = 1;
    stage.start()?;
    stage.publish(&event).await?;
    let evaluation = read(&stage, accepted.ticket_id).await?;
    assert_eq!(evaluation["status"], "failed");
    let message = evaluation["error_message"].as_str().unwrap_or_default();
    assert!(message.contains("stored transcript cannot be read"), "{message}");
    eventually("the news", || async { Ok(stage.told(accepted.ticket_id)? == 1) }).await
}

async fn deletions_are_forgotten_after_their_time(stage: Stage) -> Result<()> {
    let (old, young): (TicketId, TicketId) = (new_id(), new_id());
    let days_ago = |days: i64| now().plus_millis(-days * 24 * 60 * 60 * 1_000);
    for (ticket, deleted_at) in [(young, days_ago(89)), (old, days_ago(91))] {
        let deleted = ConversationDeleted { deleted_at, ..deleted(&stage, ticket) };
        stage.publish(&outgoing(&deleted)?).await?;
    }
    let store = stage.store_of_role()?;
    let remembered = || async { Ok(!store.settled(vec![old]).await?.contains(&old)) };
    eventually("the old deletion to be forgotten", remembered).await?;
    assert!(store.settled(vec![young]).await?.contains(&young));
    Ok(())
}
