//! What webhooks is told, and what is not told to it.

use std::sync::atomic::Ordering;

use anyhow::{Result, anyhow};
use assay_contracts::announcement::AnnouncedOutcome;
use assay_contracts::event::ConversationDeleted;
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_messaging::OutgoingEvent;
use assay_platform::runtime::{new_id, now};
use assay_testkit::{eventually, on_both_databases};

use crate::stage::Stage;
use crate::{by_ai, read};

on_both_databases! { Stage {
    evaluations_are_announced_to_those_who_want_them_and_to_all_while_nobody_knows,
    a_deletion_is_told_whoever_is_interested,
    without_webhooks_nothing_is_announced,
} }

fn announced(stage: &Stage, ticket_id: TicketId) -> Result<usize> {
    let heard = stage.heard_announced.lock().map_err(|_| anyhow!("poisoned"))?;
    Ok(heard.iter().filter(|event| event.ticket_id == ticket_id).count())
}

fn with_webhooks(stage: &mut Stage, interest: Option<Vec<OrganizationId>>) -> Result<()> {
    *stage.ingest.interest.lock().map_err(|_| anyhow!("poisoned"))? = interest;
    stage.stop_consuming();
    stage.has_webhooks = true;
    stage.start()
}

/// Webhooks says so from now on, and the role has heard it.
async fn answer(stage: &Stage, interest: Option<Vec<OrganizationId>>) -> Result<()> {
    *stage.ingest.interest.lock().map_err(|_| anyhow!("poisoned"))? = interest;
    let before = stage.ingest.interest_calls.load(Ordering::SeqCst);
    // The answer to the first call may be that of before, and that to the second one may be on its way.
    let is_heard = || async { Ok(stage.ingest.interest_calls.load(Ordering::SeqCst) >= before + 3) };
    eventually("the interest to be asked for", is_heard).await
}

async fn delete(stage: &Stage, ticket_id: TicketId) -> Result<()> {
    let deleted = ConversationDeleted { organization_id: stage.organization, ticket_id, deleted_at: now() };
    stage.publish(&OutgoingEvent::new(new_id(), now(), &deleted)?).await
}

async fn evaluations_are_announced_to_those_who_want_them_and_to_all_while_nobody_knows(
    mut stage: Stage,
) -> Result<()> {
    with_webhooks(&mut stage, None)?;
    let (unknown, event) = stage.accept(&by_ai()).await?;
    let evaluation = read(&stage, unknown.ticket_id).await?;
    eventually("an announcement", || async { Ok(announced(&stage, unknown.ticket_id)? == 1) }).await?;
    let told = stage.heard_announced.lock().map_err(|_| anyhow!("poisoned"))?[0].clone();
    let AnnouncedOutcome::Scored { axis_score, .. } = told.outcome else {
        anyhow::bail!("not scored: {told:?}")
    };
    assert_eq!(evaluation["axis"]["score"], axis_score.value());
    assert_eq!((told.external_ticket_id.as_str(), told.organization_id), ("T-1", stage.organization));

    answer(&stage, Some(vec![new_id()])).await?;
    let (unwanted, _) = stage.accept(&by_ai()).await?;
    read(&stage, unwanted.ticket_id).await?;
    answer(&stage, Some(vec![new_id(), stage.organization])).await?;
    let (wanted, _) = stage.accept(&by_ai()).await?;
    eventually("an announcement", || async { Ok(announced(&stage, wanted.ticket_id)? == 1) }).await?;
    // Without an answer what was known stays.
    answer(&stage, None).await?;
    let (later, _) = stage.accept(&by_ai()).await?;
    eventually("an announcement", || async { Ok(announced(&stage, later.ticket_id)? == 1) }).await?;
    stage.publish(&event).await?;
    assert_eq!(announced(&stage, unwanted.ticket_id)?, 0);
    assert_eq!(announced(&stage, unknown.ticket_id)?, 1, "a redelivery was announced");
    Ok(())
}

async fn a_deletion_is_told_whoever_is_interested(mut stage: Stage) -> Result<()> {
    with_webhooks(&mut stage, Some(Vec::new()))?;
    let (accepted, _) = stage.accept(&by_ai()).await?;
    delete(&stage, accepted.ticket_id).await?;
    let is_told = || async {
        let heard = stage.heard_retracted.lock().map_err(|_| anyhow!("poisoned"))?;
        Ok(heard.iter().filter(|event| event.ticket_id == accepted.ticket_id).count() == 1)
    };
    eventually("the retraction", is_told).await
}

async fn without_webhooks_nothing_is_announced(stage: Stage) -> Result<()> {
    let (accepted, _) = stage.accept(&by_ai()).await?;
    read(&stage, accepted.ticket_id).await?;
    delete(&stage, accepted.ticket_id).await?;
    eventually("the deletion", || async { Ok(stage.told_deleted(accepted.ticket_id)? == 1) }).await?;
    let (another, _) = stage.accept(&by_ai()).await?;
    eventually("the evaluation", || async { Ok(stage.told(another.ticket_id)? == 1) }).await?;
    assert!(stage.heard_announced.lock().map_err(|_| anyhow!("poisoned"))?.is_empty());
    assert!(stage.heard_retracted.lock().map_err(|_| anyhow!("poisoned"))?.is_empty());
    Ok(())
}
