//! Retention of evaluations.

use std::sync::atomic::Ordering;

use anyhow::{Result, anyhow};
use assay_contracts::event::ConversationAccepted;
use assay_contracts::ids::TicketId;
use assay_contracts::internal::OrganizationRetention;
use assay_contracts::retention::RetentionPeriod;
use assay_contracts::tenant::Scope;
use assay_contracts::time::Timestamp;
use assay_messaging::OutgoingEvent;
use assay_platform::runtime::{new_id, now};
use assay_testkit::{eventually, on_both_databases};
use uuid::Uuid;

use crate::by_ai;
use crate::test_app::TestApp;

on_both_databases! { TestApp {
    only_evaluations_beyond_their_retention_period_are_removed,
    nothing_is_removed_while_retention_periods_are_unknown,
} }

const DAY: i64 = 24 * 60 * 60 * 1_000;

/// An id with the timestamp `moment`.
fn ticket_of(moment: Timestamp) -> TicketId {
    let random = Uuid::new_v4().as_u128() >> 48;
    Uuid::from_u128(TicketId::min_at(moment).as_uuid().as_u128() | random).into()
}

async fn imported_days_ago(app: &TestApp, days: i64) -> Result<ConversationAccepted> {
    let accepted = app.store_as(ticket_of(now().plus_millis(-days * DAY)), &by_ai())?;
    app.publish(&OutgoingEvent::new(new_id(), now(), &accepted)?).await?;
    Ok(accepted)
}

async fn status(app: &TestApp, accepted: &ConversationAccepted) -> Result<u16> {
    let id = accepted.ticket_id.to_string();
    Ok(app.read(app.organization, Scope::Tickets, &id).await?.status().as_u16())
}

fn set_retention(app: &TestApp, periods: Option<Vec<OrganizationRetention>>) -> Result<()> {
    *app.stub.retention.lock().map_err(|_| anyhow!("poisoned"))? = periods;
    Ok(())
}

fn retention_of(app: &TestApp, evaluations: RetentionPeriod) -> OrganizationRetention {
    let organization_id = app.organization;
    OrganizationRetention { organization_id, transcripts: RetentionPeriod::Days(1), evaluations, files: None }
}

/// Waits until a maintenance run that started after this call has ended: runs do not overlap.
async fn next_maintenance_run(app: &TestApp) -> Result<()> {
    let calls = app.stub.retention_calls.load(Ordering::SeqCst);
    let asked = || async { Ok(app.stub.retention_calls.load(Ordering::SeqCst) >= calls + 2) };
    eventually("two maintenance runs", asked).await
}

async fn only_evaluations_beyond_their_retention_period_are_removed(app: TestApp) -> Result<()> {
    let old = [imported_days_ago(&app, 31).await?, imported_days_ago(&app, 400).await?];
    let young = imported_days_ago(&app, 29).await?;
    set_retention(
        &app,
        Some(vec![OrganizationRetention {
            organization_id: new_id(),
            ..retention_of(&app, RetentionPeriod::Days(1))
        }]),
    )?;
    next_maintenance_run(&app).await?;
    assert_eq!(status(&app, &old[1]).await?, 200);
    set_retention(&app, Some(vec![retention_of(&app, RetentionPeriod::Forever)]))?;
    next_maintenance_run(&app).await?;
    assert_eq!(status(&app, &old[1]).await?, 200);
    set_retention(&app, Some(vec![retention_of(&app, RetentionPeriod::Days(30))]))?;
    for accepted in &old {
        eventually("the removal", || async { Ok(status(&app, accepted).await? == 404) }).await?;
    }
    assert_eq!(status(&app, &young).await?, 200);
    Ok(())
}

async fn nothing_is_removed_while_retention_periods_are_unknown(app: TestApp) -> Result<()> {
    let old = imported_days_ago(&app, 400).await?;
    set_retention(&app, None)?;
    next_maintenance_run(&app).await?;
    assert_eq!(status(&app, &old).await?, 200);
    Ok(())
}
