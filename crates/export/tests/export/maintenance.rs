//! Maintenance and readiness.

use anyhow::{Context as _, Result};
use assay_contracts::export::ExportFilters;
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::time::{DAY_MILLIS, Timestamp};
use assay_export::store::{Notifications, export_store, work_store};
use assay_platform::objects::ObjectError;
use assay_platform::runtime::{new_id, now};
use assay_testkit::{eventually, execute_on, number_on, on_both_databases};

use crate::test_app::{PreparedDatabase, TestApp, complete};
use crate::test_database::{TestDatabase, create_job};

async fn create_complete_export(
    prepared: &PreparedDatabase,
    expires_at: Timestamp,
) -> Result<(ExportId, String)> {
    let TestDatabase { database, .. } = &prepared.test_database;
    let (exports, organization_id) = (export_store(database), new_id());
    let id = create_job(&exports, organization_id, ExportFilters::default(), now(), None).await?;
    complete(&work_store(database, Notifications::Off), &prepared.objects, b"header\r\n", expires_at).await?;
    Ok((id, format!("exports/{organization_id}/{id}/1.csv")))
}

async fn expired_files_are_removed_although_other_steps_fail(prepared: PreparedDatabase) -> Result<()> {
    let (expired, expired_key) = create_complete_export(&prepared, now()).await?;
    let (_, kept_key) = create_complete_export(&prepared, now().plus_millis(600_000)).await?;
    // Breaks the creation of partitions and pruning.
    for table in ["evaluation_rows", "idempotency_keys"] {
        execute_on(
            &prepared.test_database.database,
            format!("ALTER TABLE {table} RENAME TO {table}_elsewhere"),
        )
        .await?;
    }
    let app = prepared.start()?;
    let removed =
        format!("SELECT count(*) FROM exports WHERE file_removed_at IS NOT NULL AND id = '{expired}'");
    app.test_database.number_becomes("the removal", &removed, 1).await?;
    assert!(matches!(app.objects.size(&expired_key).await, Err(ObjectError::NotFound(_))));
    assert_eq!(app.objects.size(&kept_key).await?, 8);
    assert_eq!(app.exports.expired_files(now(), None, 10).await?, []);
    Ok(())
}

async fn files_that_cannot_be_removed_do_not_block_others(prepared: PreparedDatabase) -> Result<()> {
    // More than one query finds (`FILES_PER_QUERY`), with the same expiry.
    let expired_at = now().plus_millis(-10);
    let (mut stuck, mut obstacle) = (None, std::path::PathBuf::new());
    for _ in 0..101 {
        let (id, key) = create_complete_export(&prepared, expired_at).await?;
        // A folder in its place, which cannot be deleted like a file.
        obstacle = prepared.folder().join(&key);
        std::fs::remove_file(&obstacle)?;
        std::fs::create_dir_all(obstacle.join("in the way"))?;
        stuck = Some(id);
    }
    let stuck = stuck.context("no export")?;
    let (next, next_key) = create_complete_export(&prepared, now()).await?;
    let app = prepared.start()?;
    let removed =
        |id| format!("SELECT count(*) FROM exports WHERE file_removed_at IS NOT NULL AND id = '{id}'");
    let is_removed =
        async |id: ExportId| anyhow::Ok(number_on(&app.test_database.database, &removed(id)).await? == 1);
    eventually("the removal", || is_removed(next)).await?;
    assert!(matches!(app.objects.size(&next_key).await, Err(ObjectError::NotFound(_))));
    assert!(!is_removed(stuck).await?);
    std::fs::remove_dir_all(&obstacle)?;
    eventually("the removal of a file that was stuck", || is_removed(stuck)).await
}

/// After 90 days the event of an evaluation is refused, so the evaluation cannot arrive any more.
async fn skipped_sequences_are_forgotten_after_90_days(prepared: PreparedDatabase) -> Result<()> {
    let organization: OrganizationId = new_id();
    for (sequence, days) in [(1, 91), (3, 89)] {
        let older_than = now().plus_millis(-days * DAY_MILLIS).as_millis();
        let insert = format!(
            "INSERT INTO skipped_sequences (organization_id, first, last, older_than)
             VALUES ('{organization}', {sequence}, {sequence}, {older_than})"
        );
        execute_on(&prepared.test_database.database, insert).await?;
    }
    let app = prepared.start()?;
    app.test_database.number_becomes("the expiry", "SELECT min(first) FROM skipped_sequences", 3).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inbox_is_pruned_although_partitions_fail() -> Result<()> {
    let prepared = PreparedDatabase::on_postgres().await?;
    let database = &prepared.test_database.database;
    execute_on(database, "ALTER TABLE evaluation_rows RENAME TO evaluation_rows_elsewhere").await?;
    execute_on(database, "INSERT INTO inbox VALUES ('a consumer', gen_random_uuid(), 1)").await?;
    let app = prepared.start()?;
    app.test_database.number_becomes("the pruning", "SELECT count(*) FROM inbox", 0).await
}

async fn role_becomes_ready(app: TestApp) -> Result<()> {
    eventually("readiness", || async {
        Ok(app.http.get(format!("{}/readyz", app.address)).send().await?.status() == 200)
    })
    .await?;
    let alive = app.http.get(format!("{}/healthz", app.address)).send().await?;
    assert_eq!(alive.status(), 200);
    Ok(())
}

mod removing {
    use super::*;

    on_both_databases! { PreparedDatabase {
        expired_files_are_removed_although_other_steps_fail,
        files_that_cannot_be_removed_do_not_block_others,
        skipped_sequences_are_forgotten_after_90_days,
    } }
}

on_both_databases! { TestApp { role_becomes_ready, } }
