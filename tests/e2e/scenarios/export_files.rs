//! The object store holds the files of complete exports and nothing else, also after workers were killed at the worst moments.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, PgConnection};
use serde_json::json;

use crate::harness::{Kind, PrivateStack, conversation, text, until};

const EXPORTS: &str = "/v1/evaluations/exports";
/// Longer than the time between the claim of a job and the kill of its worker.
const LEASE: (&str, &str) = ("ASSAY_EXPORT_WORKER__LEASE_MILLISECONDS", "10000");
/// The names of a file in the store while it is uploaded, and afterwards.
const UNFINISHED: &str = "1.csv#1";
const FINISHED: &str = "1.csv";
/// Settings of the last restart. Before it nothing is swept.
const SWEEP: [(&str, &str); 3] = [
    ("ASSAY_EXPORT_WORKER__SWEEP_GRACE_SECONDS", "0"),
    ("ASSAY_EXPORT_WORKER__MAINTENANCE_INTERVAL_SECONDS", "1"),
    ("ASSAY_EXPORT__MAINTENANCE_INTERVAL_SECONDS", "1"),
];

/// Workers are killed, others complete the exports, left-over files are swept; then the files expire.
pub async fn run(stack: &mut PrivateStack) -> Result<()> {
    stack.start_with(&[LEASE]).await?;
    let api = stack.api()?;
    for number in 0..3 {
        let ticket = api.import(&conversation(&format!("file-{number}"))).await?;
        api.evaluation(&ticket).await?;
    }
    let mut exports = killed_under_load(stack).await?;
    if stack.kind() == Kind::Distributed {
        for left_over in [UNFINISHED, FINISHED] {
            exports.push(killed_with_a_left_over_file(stack, left_over).await?);
        }
    }
    stack.kill(&["export", "export-worker"]);
    stack.start_with(&SWEEP).await?;
    let api = stack.api()?;
    for id in &exports {
        let export = api.await_complete(id).await?;
        let rows = String::from_utf8(api.file(&export).await?)?.lines().count() - 1;
        ensure!(rows == 3 && export["evaluations_complete"] == true, "{rows} rows: {export}");
    }
    until("one file for each export", async || {
        let files = stored(stack)?;
        let folders: BTreeSet<_> =
            files.iter().filter_map(|path| path.parent()?.file_name()?.to_str()).collect();
        let is_clean = files.len() == exports.len() && exports.iter().all(|id| folders.contains(id.as_str()));
        Ok(is_clean.then_some(()))
    })
    .await
    .with_context(|| format!("{:?}", stored(stack)))?;
    if stack.kind() == Kind::Distributed {
        expire(stack, &exports).await?;
    }
    Ok(())
}

async fn create(stack: &PrivateStack) -> Result<String> {
    text(&stack.api()?.post(EXPORTS, &json!({"kind": "axis"})).await?.expect(201)?, "id")
}

/// Kills the worker at arbitrary moments.
async fn killed_under_load(stack: &mut PrivateStack) -> Result<Vec<String>> {
    let mut exports = Vec::new();
    for _ in 0..3 {
        for _ in 0..4 {
            exports.push(create(stack).await?);
        }
        stack.kill(&["export-worker"]);
        stack.start().await?;
    }
    Ok(exports)
}

/// Kills the worker when its file is in this state. While the rows are locked the upload has begun and cannot continue;
/// while the job is locked the file is finished, and the job cannot be completed.
async fn killed_with_a_left_over_file(stack: &mut PrivateStack, left_over: &str) -> Result<String> {
    settle(stack).await?;
    let mut held = lock(stack, "LOCK TABLE export.evaluation_rows IN ACCESS EXCLUSIVE MODE")?;
    let id = create(stack).await?;
    appears(stack, &id, UNFINISHED).await?;
    if left_over == FINISHED {
        // Locks the job, then frees the rows.
        held = lock(stack, &format!("SELECT id FROM export.exports WHERE id = '{id}' FOR UPDATE"))?;
        appears(stack, &id, FINISHED).await?;
    }
    stack.kill(&["export-worker"]);
    drop(held);
    let files = files_of(stack, &id)?;
    ensure!(files == [left_over], "{files:?}");
    stack.start().await?;
    Ok(id)
}

/// Waits until no export is open, so that the next one is claimed at once.
async fn settle(stack: &PrivateStack) -> Result<()> {
    let api = stack.api()?;
    until("the end of all exports", async || {
        let page = api.get(&format!("{EXPORTS}?limit=100")).await?.expect(200)?;
        let exports = page["data"].as_array().context("no data")?;
        Ok(exports.iter().all(|export| export["status"] == "complete").then_some(()))
    })
    .await
}

/// Files past their retention period are removed, and their exports have the file status `expired`.
async fn expire(stack: &PrivateStack, exports: &[String]) -> Result<()> {
    let month = 31_i64 * 24 * 60 * 60 * 1_000;
    let age = format!("UPDATE export.exports SET updated_at = updated_at - {month}");
    connect(stack)?.batch_execute(&age)?;
    until("an empty store", async || Ok(stored(stack)?.is_empty().then_some(()))).await?;
    let api = stack.api()?;
    for id in exports {
        let export = api.get(&format!("{EXPORTS}/{id}")).await?.expect(200)?;
        ensure!(export["status"] == "complete" && export["file_status"] == "expired", "{export}");
        ensure!(export.get("download_url").is_none(), "{export}");
        api.get(&format!("{EXPORTS}/{id}/download")).await?.problem(404, "export-file-gone")?;
    }
    Ok(())
}

fn connect(stack: &PrivateStack) -> Result<PgConnection> {
    Ok(PgConnection::establish(stack.setting("ASSAY_EXPORT__DATABASE_URL"))?)
}

/// Holds what `statement` locks until it is dropped.
fn lock(stack: &PrivateStack, statement: &str) -> Result<PgConnection> {
    let mut connection = connect(stack)?;
    connection.batch_execute(&format!("BEGIN; {statement}"))?;
    Ok(connection)
}

async fn appears(stack: &PrivateStack, id: &str, file: &str) -> Result<()> {
    until(&format!("the file {file}"), async || {
        Ok(files_of(stack, id)?.iter().any(|found| found == file).then_some(()))
    })
    .await
}

/// Names of the files of an export.
fn files_of(stack: &PrivateStack, id: &str) -> Result<Vec<String>> {
    let stored =
        stored(stack)?.into_iter().filter(|path| path.parent().is_some_and(|folder| folder.ends_with(id)));
    Ok(stored.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
}

/// All files below folders named `exports`.
fn stored(stack: &PrivateStack) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![stack.data().to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if entry.path().iter().any(|part| part == "exports") {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}
