//! How long files are kept.

use anyhow::{Context as _, Result};
use assay_contracts::export::{ExportFilters, ExportKind};
use assay_contracts::ids::ExportId;
use assay_contracts::internal::OrganizationRetention;
use assay_contracts::retention::Period;
use assay_contracts::time::Timestamp;
use assay_testkit::{eventually, on_both_databases};

use crate::stage::Stage;

on_both_databases! { Stage {
    a_file_gets_the_period_of_its_organization_and_the_default_again_when_that_is_given_up,
    without_the_periods_files_keep_what_they_have,
    a_period_of_the_installation_may_be_for_ever,
} }

const DAY: i64 = 24 * 60 * 60 * 1_000;

fn kept(stage: &Stage, files: Option<Period>) -> Option<Vec<OrganizationRetention>> {
    let organization_id = stage.organization_id;
    let (transcripts, evaluations) = (Period::Days(1), Period::Days(1));
    Some(vec![OrganizationRetention { organization_id, transcripts, evaluations, files }])
}

/// How many milliseconds after its completion a file expires.
async fn period_of(stage: &Stage, id: ExportId) -> Result<i64> {
    let expires_at = stage.file(id).await?.expires_at;
    Ok(expires_at.millis_since(stage.job(id).await?.updated_at))
}

async fn a_file_gets_the_period_of_its_organization_and_the_default_again_when_that_is_given_up(
    stage: Stage,
) -> Result<()> {
    let _worker = stage.worker(&stage.config()?)?;
    let id = stage.create(ExportKind::Axis, ExportFilters::default()).await?;
    let before = stage.file(id).await?;
    assert_eq!(period_of(&stage, id).await?, 30 * DAY);
    for (period, expected) in [(Some(Period::Days(2)), 2), (Some(Period::Days(90)), 90), (None, 30)] {
        stage.registry.tell(kept(&stage, period));
        let changed = || async { Ok(period_of(&stage, id).await? == expected * DAY) };
        eventually(&format!("a period of {expected} days"), changed).await?;
    }
    stage.registry.tell(kept(&stage, Some(Period::Forever)));
    let changed = || async { Ok(stage.file(id).await?.expires_at == Timestamp::MAX) };
    eventually("a period without an end", changed).await?;
    assert_eq!(stage.file(id).await?.object_key, before.object_key);
    Ok(())
}

async fn without_the_periods_files_keep_what_they_have(stage: Stage) -> Result<()> {
    let _worker = stage.worker(&stage.config()?)?;
    let id = stage.create(ExportKind::Axis, ExportFilters::default()).await?;
    stage.registry.tell(kept(&stage, Some(Period::Days(2))));
    eventually("the period", || async { Ok(period_of(&stage, id).await? == 2 * DAY) }).await?;
    stage.registry.tell(None);
    stage.registry.after_a_round().await?;
    assert_eq!(period_of(&stage, id).await?, 2 * DAY);
    Ok(())
}

async fn a_period_of_the_installation_may_be_for_ever(stage: Stage) -> Result<()> {
    let mut config = stage.config()?;
    config.file_retention_days = 0;
    let _worker = stage.worker(&config)?;
    let id = stage.create(ExportKind::Axis, ExportFilters::default()).await?;
    assert_eq!(stage.file(id).await?.expires_at, Timestamp::MAX);
    config.file_retention_days = 40_000;
    let error = stage.worker(&config).err().context("accepted")?.to_string();
    assert!(error.contains("file_retention_days"), "{error}");
    Ok(())
}
