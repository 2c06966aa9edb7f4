//! What the role does unasked, and whether it says that it is ready.

use anyhow::Result;
use assay_contracts::event::ExportRequested;
use assay_contracts::export::{ExportKind, NewExport};
use assay_contracts::ids::ExportId;
use assay_contracts::time::Timestamp;
use assay_export::domain::job::Job;
use assay_export::store::{Announces, Creation, export_store, work_store};
use assay_messaging::OutgoingEvent;
use assay_platform::objects::ObjectError;
use assay_platform::runtime::{new_id, now};
use assay_testkit::{eventually, on_both_databases};

use crate::place::{Located, execute, number};
use crate::stage::{Backstage, Stage, complete};

async fn finished_export(backstage: &Backstage, expires_at: Timestamp) -> Result<(ExportId, String)> {
    let Located { database, .. } = &backstage.located;
    let organization_id = new_id();
    let export =
        NewExport { kind: ExportKind::Axis, format: Default::default(), filters: Default::default() };
    let job = Job::new(new_id(), organization_id, &export, now());
    let id = job.id;
    let requested = ExportRequested { organization_id, export_id: id, kind: job.kind };
    let event = OutgoingEvent::new(new_id(), now(), &requested)?;
    export_store(database).create(Creation { job, event, record: None, awaited_evaluations: None }).await?;
    complete(&*work_store(database, Announces::Nothing), &backstage.objects, b"header\r\n", expires_at)
        .await?;
    Ok((id, format!("exports/{organization_id}/{id}/1.csv")))
}

async fn files_are_removed_when_their_time_has_passed(backstage: Backstage) -> Result<()> {
    let (expired, expired_key) = finished_export(&backstage, now()).await?;
    let (_, kept_key) = finished_export(&backstage, now().plus_millis(600_000)).await?;
    let stage = backstage.start()?;
    let removed =
        format!("SELECT count(*) FROM exports WHERE file_removed_at IS NOT NULL AND id = '{expired}'");
    eventually("the removal", || async { Ok(number(&stage.located.database, &removed).await? == 1) }).await?;
    assert!(matches!(stage.objects.size(&expired_key).await, Err(ObjectError::NotFound(_))));
    assert_eq!(stage.objects.size(&kept_key).await?, 8);
    assert_eq!(stage.exports.expired_files(now(), 10).await?, []);
    Ok(())
}

async fn files_are_removed_although_nothing_else_can_be_done(backstage: Backstage) -> Result<()> {
    let (expired, expired_key) = finished_export(&backstage, now()).await?;
    // Without the one no partitions can be made, without the other nothing can be pruned.
    for table in ["evaluation_rows", "idempotency_keys"] {
        execute(&backstage.located.database, format!("ALTER TABLE {table} RENAME TO {table}_elsewhere"))
            .await?;
    }
    let stage = backstage.start()?;
    let removed =
        format!("SELECT count(*) FROM exports WHERE file_removed_at IS NOT NULL AND id = '{expired}'");
    eventually("the removal", || async { Ok(number(&stage.located.database, &removed).await? == 1) }).await?;
    assert!(matches!(stage.objects.size(&expired_key).await, Err(ObjectError::NotFound(_))));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_forgotten_although_no_partitions_can_be_made() -> Result<()> {
    let backstage = Backstage::on_postgres().await?;
    let database = &backstage.located.database;
    execute(database, "ALTER TABLE evaluation_rows RENAME TO evaluation_rows_elsewhere").await?;
    execute(database, "INSERT INTO inbox VALUES ('a consumer', gen_random_uuid(), 1)").await?;
    let stage = backstage.start()?;
    eventually("the pruning", || async {
        Ok(number(&stage.located.database, "SELECT count(*) FROM inbox").await? == 0)
    })
    .await
}

async fn the_role_is_ready_when_it_can_work(stage: Stage) -> Result<()> {
    eventually("readiness", || async {
        Ok(stage.http.get(format!("{}/readyz", stage.address)).send().await?.status() == 200)
    })
    .await?;
    let alive = stage.http.get(format!("{}/healthz", stage.address)).send().await?;
    assert_eq!(alive.status(), 200);
    Ok(())
}

mod removing {
    use super::*;

    on_both_databases! { Backstage {
        files_are_removed_when_their_time_has_passed,
        files_are_removed_although_nothing_else_can_be_done,
    } }
}

on_both_databases! { Stage { the_role_is_ready_when_it_can_work, } }
