//! Retention of export files.

use anyhow::{Context as _, Result};
use assay_contracts::export::{ExportFilters, ExportKind};
use assay_contracts::ids::ExportId;
use assay_contracts::internal::OrganizationRetention;
use assay_contracts::retention::RetentionPeriod;
use assay_contracts::time::{DAY_MILLIS, Timestamp};
use assay_testkit::{eventually, on_both_databases};

use crate::test_app::TestApp;

/// The registry's response with this override for files.
fn override_of(app: &TestApp, files: Option<RetentionPeriod>) -> Option<Vec<OrganizationRetention>> {
    let organization_id = app.organization_id;
    let (transcripts, evaluations) = (RetentionPeriod::Days(1), RetentionPeriod::Days(1));
    Some(vec![OrganizationRetention { organization_id, transcripts, evaluations, files }])
}

/// Milliseconds between the completion of a file and its expiry.
async fn lifetime_of(app: &TestApp, id: ExportId) -> Result<i64> {
    let expires_at = app.file(id).await?.expires_at;
    Ok(expires_at.millis_since(app.job(id).await?.updated_at))
}

async fn retention_override_applies_to_export_files(app: TestApp) -> Result<()> {
    let _worker = app.worker()?;
    let id = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    let original = app.file(id).await?;
    assert_eq!(lifetime_of(&app, id).await?, 30 * DAY_MILLIS);
    for (period, expected) in
        [(Some(RetentionPeriod::Days(2)), 2), (Some(RetentionPeriod::Days(90)), 90), (None, 30)]
    {
        app.registry.set_retention(override_of(&app, period));
        let changed = || async { Ok(lifetime_of(&app, id).await? == expected * DAY_MILLIS) };
        eventually(&format!("a period of {expected} days"), changed).await?;
    }
    app.registry.set_retention(override_of(&app, Some(RetentionPeriod::Forever)));
    let changed = || async { Ok(app.file(id).await?.expires_at == Timestamp::MAX) };
    eventually("an unlimited period", changed).await?;
    assert_eq!(app.file(id).await?.object_key, original.object_key);
    Ok(())
}

async fn files_keep_their_expiry_while_retention_is_unknown(app: TestApp) -> Result<()> {
    let _worker = app.worker()?;
    let id = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    app.registry.set_retention(override_of(&app, Some(RetentionPeriod::Days(2))));
    eventually("the period", || async { Ok(lifetime_of(&app, id).await? == 2 * DAY_MILLIS) }).await?;
    app.registry.set_retention(None);
    app.registry.next_maintenance_run().await?;
    assert_eq!(lifetime_of(&app, id).await?, 2 * DAY_MILLIS);
    Ok(())
}

async fn default_retention_may_be_forever(app: TestApp) -> Result<()> {
    let _worker = app.worker_with(|config| config.file_retention_days = 0)?;
    let id = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    assert_eq!(app.file(id).await?.expires_at, Timestamp::MAX);
    let refused = app.worker_with(|config| config.file_retention_days = 40_000);
    let error = refused.err().context("accepted")?.to_string();
    assert!(error.contains("file_retention_days"), "{error}");
    Ok(())
}

on_both_databases! { TestApp {
    retention_override_applies_to_export_files,
    files_keep_their_expiry_while_retention_is_unknown,
    default_retention_may_be_forever,
} }
