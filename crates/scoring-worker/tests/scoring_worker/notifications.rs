//! Events for webhooks.

use std::sync::atomic::Ordering;

use anyhow::{Result, anyhow};
use assay_contracts::event::ConversationDeleted;
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::notification::EvaluationNotificationOutcome;
use assay_messaging::OutgoingEvent;
use assay_platform::runtime::{new_id, now};
use assay_testkit::{eventually, on_both_databases};

use crate::test_app::TestApp;
use crate::{by_ai, read};

on_both_databases! { TestApp {
    organizations_are_notified_unless_known_not_to_subscribe,
    deletion_is_announced_without_subscribers,
    nothing_is_announced_without_webhooks,
} }

fn announced(app: &TestApp, ticket_id: TicketId) -> Result<usize> {
    let received = app.received_announcements.lock().map_err(|_| anyhow!("poisoned"))?;
    Ok(received.iter().filter(|event| event.ticket_id == ticket_id).count())
}

fn with_webhooks(app: &mut TestApp, subscribers: Option<Vec<OrganizationId>>) -> Result<()> {
    *app.stub.subscribers.lock().map_err(|_| anyhow!("poisoned"))? = subscribers;
    app.stop_consuming();
    app.has_webhooks = true;
    app.start()
}

/// Changes the answer of the webhooks stub and waits until the role has polled it.
async fn set_subscribers(app: &TestApp, subscribers: Option<Vec<OrganizationId>>) -> Result<()> {
    *app.stub.subscribers.lock().map_err(|_| anyhow!("poisoned"))? = subscribers;
    let before = app.stub.subscriber_calls.load(Ordering::SeqCst);
    // The first call may still get the previous answer, and the second one may be in flight.
    let is_polled = || async { Ok(app.stub.subscriber_calls.load(Ordering::SeqCst) >= before + 3) };
    eventually("the subscribers to be polled", is_polled).await
}

async fn delete(app: &TestApp, ticket_id: TicketId) -> Result<()> {
    let deleted = ConversationDeleted { organization_id: app.organization, ticket_id, deleted_at: now() };
    app.publish(&OutgoingEvent::new(new_id(), now(), &deleted)?).await
}

async fn organizations_are_notified_unless_known_not_to_subscribe(mut app: TestApp) -> Result<()> {
    with_webhooks(&mut app, None)?;
    let (unknown, event) = app.accept(&by_ai()).await?;
    let evaluation = read(&app, unknown.ticket_id).await?;
    eventually("the notification", || async { Ok(announced(&app, unknown.ticket_id)? == 1) }).await?;
    let notification = app.received_announcements.lock().map_err(|_| anyhow!("poisoned"))?[0].clone();
    let EvaluationNotificationOutcome::Scored { axis_score, .. } = notification.outcome else {
        anyhow::bail!("not scored: {notification:?}")
    };
    assert_eq!(evaluation["axis"]["score"], axis_score.value());
    assert_eq!(
        (notification.external_ticket_id.as_str(), notification.organization_id),
        ("T-1", app.organization)
    );

    set_subscribers(&app, Some(vec![new_id()])).await?;
    let (unwanted, _) = app.accept(&by_ai()).await?;
    read(&app, unwanted.ticket_id).await?;
    set_subscribers(&app, Some(vec![new_id(), app.organization])).await?;
    let (wanted, _) = app.accept(&by_ai()).await?;
    eventually("the notification", || async { Ok(announced(&app, wanted.ticket_id)? == 1) }).await?;
    // When webhooks fails, the last known set stays in use.
    set_subscribers(&app, None).await?;
    let (later, _) = app.accept(&by_ai()).await?;
    eventually("the notification", || async { Ok(announced(&app, later.ticket_id)? == 1) }).await?;
    app.publish(&event).await?;
    assert_eq!(announced(&app, unwanted.ticket_id)?, 0);
    assert_eq!(announced(&app, unknown.ticket_id)?, 1, "a redelivery was announced");
    Ok(())
}

async fn deletion_is_announced_without_subscribers(mut app: TestApp) -> Result<()> {
    with_webhooks(&mut app, Some(Vec::new()))?;
    let (accepted, _) = app.accept(&by_ai()).await?;
    delete(&app, accepted.ticket_id).await?;
    let is_published = || async {
        let received = app.received_retractions.lock().map_err(|_| anyhow!("poisoned"))?;
        Ok(received.iter().filter(|event| event.ticket_id == accepted.ticket_id).count() == 1)
    };
    eventually("the retraction", is_published).await
}

async fn nothing_is_announced_without_webhooks(app: TestApp) -> Result<()> {
    let (accepted, _) = app.accept(&by_ai()).await?;
    read(&app, accepted.ticket_id).await?;
    delete(&app, accepted.ticket_id).await?;
    eventually("the deletion", || async { Ok(app.published_deletions(accepted.ticket_id)? == 1) }).await?;
    let (another, _) = app.accept(&by_ai()).await?;
    eventually("the evaluation", || async { Ok(app.published(another.ticket_id)? == 1) }).await?;
    assert!(app.received_announcements.lock().map_err(|_| anyhow!("poisoned"))?.is_empty());
    assert!(app.received_retractions.lock().map_err(|_| anyhow!("poisoned"))?.is_empty());
    Ok(())
}
