//! Evaluations whose period has passed.

use std::sync::atomic::Ordering;

use anyhow::{Result, anyhow};
use assay_contracts::event::ConversationAccepted;
use assay_contracts::ids::TicketId;
use assay_contracts::internal::OrganizationRetention;
use assay_contracts::retention::Period;
use assay_contracts::tenant::Scope;
use assay_contracts::time::Timestamp;
use assay_messaging::OutgoingEvent;
use assay_platform::runtime::{new_id, now};
use assay_testkit::{eventually, on_both_databases};
use uuid::Uuid;

use crate::by_ai;
use crate::stage::Stage;

on_both_databases! { Stage {
    evaluations_older_than_their_period_are_removed_and_younger_ones_are_not,
    without_the_periods_nothing_is_removed,
} }

const DAY: i64 = 24 * 60 * 60 * 1_000;

/// An id that was made at this moment, as far as it tells.
fn ticket_of(moment: Timestamp) -> TicketId {
    let random = Uuid::new_v4().as_u128() >> 48;
    Uuid::from_u128(TicketId::first_at(moment).as_uuid().as_u128() | random).into()
}

async fn evaluated_days_ago(stage: &Stage, days: i64) -> Result<ConversationAccepted> {
    let accepted = stage.store_as(ticket_of(now().plus_millis(-days * DAY)), &by_ai())?;
    stage.publish(&OutgoingEvent::new(new_id(), now(), &accepted)?).await?;
    Ok(accepted)
}

async fn status(stage: &Stage, accepted: &ConversationAccepted) -> Result<u16> {
    let id = accepted.ticket_id.to_string();
    Ok(stage.read(stage.organization, Scope::Tickets, &id).await?.status().as_u16())
}

fn set_periods(stage: &Stage, periods: Option<Vec<OrganizationRetention>>) -> Result<()> {
    *stage.ingest.retention.lock().map_err(|_| anyhow!("poisoned"))? = periods;
    Ok(())
}

fn evaluations_kept(stage: &Stage, evaluations: Period) -> OrganizationRetention {
    let organization_id = stage.organization;
    OrganizationRetention { organization_id, transcripts: Period::Days(1), evaluations, files: None }
}

/// Waits until a round of housekeeping that began after this call has ended: rounds follow each other.
async fn after_a_round(stage: &Stage) -> Result<()> {
    let calls = stage.ingest.retention_calls.load(Ordering::SeqCst);
    let asked = || async { Ok(stage.ingest.retention_calls.load(Ordering::SeqCst) >= calls + 2) };
    eventually("two rounds of housekeeping", asked).await
}

async fn evaluations_older_than_their_period_are_removed_and_younger_ones_are_not(
    stage: Stage,
) -> Result<()> {
    let old = [evaluated_days_ago(&stage, 31).await?, evaluated_days_ago(&stage, 400).await?];
    let young = evaluated_days_ago(&stage, 29).await?;
    set_periods(
        &stage,
        Some(vec![OrganizationRetention {
            organization_id: new_id(),
            ..evaluations_kept(&stage, Period::Days(1))
        }]),
    )?;
    after_a_round(&stage).await?;
    assert_eq!(status(&stage, &old[1]).await?, 200);
    set_periods(&stage, Some(vec![evaluations_kept(&stage, Period::Forever)]))?;
    after_a_round(&stage).await?;
    assert_eq!(status(&stage, &old[1]).await?, 200);
    set_periods(&stage, Some(vec![evaluations_kept(&stage, Period::Days(30))]))?;
    for accepted in &old {
        eventually("the removal", || async { Ok(status(&stage, accepted).await? == 404) }).await?;
    }
    assert_eq!(status(&stage, &young).await?, 200);
    Ok(())
}

async fn without_the_periods_nothing_is_removed(stage: Stage) -> Result<()> {
    let old = evaluated_days_ago(&stage, 400).await?;
    set_periods(&stage, None)?;
    after_a_round(&stage).await?;
    assert_eq!(status(&stage, &old).await?, 200);
    Ok(())
}
