//! Left-over files in the object store.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use assay_contracts::export::{ExportFilters, ExportKind, ExportStatus};
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_platform::runtime::{LockExt as _, new_id};
use assay_testkit::{eventually, execute_on, on_both_databases};

use crate::samples::{STARTED, evaluated};
use crate::test_app::{TestApp, file_of, stop};

/// Paths of all files below the folder of the store.
fn stored(app: &TestApp) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut folders: Vec<PathBuf> = vec![app.files.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(app.files.path())?.display().to_string());
            }
        }
    }
    Ok(found)
}

fn put(app: &TestApp, key: &str) -> Result<String> {
    let path = app.files.path().join(key);
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
    std::fs::write(path, b"personal data")?;
    Ok(key.to_owned())
}

/// Creates the files of killed workers: for each attempt a complete file, and a part (`#1`) of an unfinished upload.
fn leave_behind(app: &TestApp, id: ExportId, attempts: &[u32]) -> Result<()> {
    for attempt in attempts {
        put(app, &app.key(id, *attempt))?;
        put(app, &format!("{}#1", app.key(id, *attempt)))?;
    }
    Ok(())
}

/// Creates an export and returns its file. Without an export the files of unknown exports of the organization would be kept.
async fn own_file(app: &TestApp) -> Result<String> {
    let id = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    Ok(app.file(id).await?.object_key)
}

/// The warnings and errors that this process logs.
struct Log;

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

impl Log {
    fn start() {
        let log = tracing_subscriber::fmt().with_ansi(false).with_max_level(tracing::Level::WARN);
        // The tests of one process share the log.
        let _ = log.with_writer(|| Log).try_init();
    }

    fn text() -> String {
        String::from_utf8_lossy(&LOG.locked()).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.locked().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

async fn files_that_no_export_has_are_removed(app: TestApp) -> Result<()> {
    let event = evaluated(app.organization_id, STARTED);
    app.record(std::slice::from_ref(&event)).await?;
    let complete = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    leave_behind(&app, complete, &[2, 7])?;
    put(&app, &format!("{}#3", app.key(complete, 1)))?;
    leave_behind(&app, new_id(), &[1])?;
    let foreign = BTreeSet::from([
        put(&app, "exports/notes.txt")?,
        put(&app, "exports/1.csv")?,
        put(&app, "other/1.csv#1")?,
    ]);
    let _worker = app.worker()?;
    let file = app.file(complete).await?.object_key;
    let kept: BTreeSet<String> = foreign.into_iter().chain([file]).collect();
    eventually("the removal", || async { Ok(stored(&app)? == kept) }).await?;
    assert_eq!(app.content(complete).await?, file_of(ExportKind::Axis, [&event]));
    Ok(())
}

async fn failed_job_leaves_no_file(app: TestApp) -> Result<()> {
    let id = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    // Each of its workers was killed after it had written the file.
    for attempt in 1..=3 {
        app.claim_and_crash().await?;
        leave_behind(&app, id, &[attempt])?;
    }
    let _worker = app.worker()?;
    app.status_becomes(id, ExportStatus::Failed).await?;
    eventually("the removal", || async { Ok(stored(&app)?.is_empty()) }).await
}

async fn file_marked_as_removed_is_removed(app: TestApp) -> Result<()> {
    let worker = app.worker_with(|config| config.maintenance_interval_seconds = 3_600)?;
    let id = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    app.file(id).await?;
    stop(worker).await?;
    execute_on(&app.test_database.database, "UPDATE exports SET file_removed_at = 1").await?;
    let _worker = app.worker()?;
    eventually("the removal", || async { Ok(stored(&app)?.is_empty()) }).await
}

async fn files_of_open_jobs_are_kept(app: TestApp) -> Result<()> {
    let id = app.create_with_target(1).await?;
    let _workers = [app.worker()?, app.worker()?];
    app.status_becomes(id, ExportStatus::Running).await?;
    leave_behind(&app, id, &[1, 2])?;
    let before = stored(&app)?;
    for _ in 0..3 {
        app.registry.next_maintenance_run().await?;
    }
    assert_eq!(stored(&app)?, before);
    assert_eq!(app.job(id).await?.status(), ExportStatus::Running);
    Ok(())
}

async fn young_files_are_kept(app: TestApp) -> Result<()> {
    leave_behind(&app, new_id(), &[1])?;
    let _worker = app.worker_with(|config| config.sweep_grace_seconds = 3_600)?;
    own_file(&app).await?;
    let before = stored(&app)?;
    for _ in 0..2 {
        app.registry.next_maintenance_run().await?;
    }
    assert_eq!(stored(&app)?, before);
    Ok(())
}

async fn many_files_are_removed_in_portions(app: TestApp) -> Result<()> {
    for _ in 0..1_200 {
        put(&app, &app.key(new_id(), 1))?;
    }
    let _worker = app.worker()?;
    let kept = BTreeSet::from([own_file(&app).await?]);
    eventually("the removal", || async { Ok(stored(&app)? == kept) }).await
}

/// The worker has an empty database, or the address of other files.
async fn files_of_another_installation_are_kept(app: TestApp) -> Result<()> {
    Log::start();
    let id = new_id();
    leave_behind(&app, id, &[1, 2])?;
    let before = stored(&app)?;
    let _worker = app.worker()?;
    let is_logged = |line: &str| line.contains(&id.to_string()) && line.contains("`objects.url`");
    eventually("the error", || async { Ok(Log::text().lines().any(is_logged)) }).await?;
    for _ in 0..2 {
        app.registry.next_maintenance_run().await?;
    }
    assert_eq!(stored(&app)?, before);
    Ok(())
}

/// The worker has the address of another installation's files, and has already written its own beside them.
async fn foreign_files_are_kept_beside_own_exports(app: TestApp) -> Result<()> {
    Log::start();
    let (organization, id): (OrganizationId, ExportId) = (new_id(), new_id());
    let keys = [1, 2].map(|attempt| format!("exports/{organization}/{id}/{attempt}.csv"));
    let foreign = keys.iter().flat_map(|key| [key.clone(), format!("{key}#1")]);
    let foreign = foreign.map(|key| put(&app, &key)).collect::<Result<BTreeSet<_>>>()?;
    let _worker = app.worker()?;
    let own = own_file(&app).await?;
    leave_behind(&app, new_id(), &[1])?;
    let kept: BTreeSet<String> = foreign.into_iter().chain([own]).collect();
    eventually("the removal of own left-over files", || async { Ok(stored(&app)? == kept) }).await?;
    for _ in 0..2 {
        app.registry.next_maintenance_run().await?;
    }
    assert_eq!(stored(&app)?, kept);
    let is_logged = |line: &str| line.contains(&organization.to_string()) && line.contains("`objects.url`");
    assert!(Log::text().lines().any(is_logged));
    Ok(())
}

async fn failed_sweep_is_logged_and_retention_goes_on(app: TestApp) -> Result<()> {
    Log::start();
    // Not a folder: it cannot be listed.
    put(&app, "exports")?;
    let _worker = app.worker()?;
    for _ in 0..2 {
        app.registry.next_maintenance_run().await?;
    }
    let text = Log::text();
    assert!(text.contains("left-over export files are kept"), "{text}");
    assert!(!text.contains("periodic task failed"), "{text}");
    Ok(())
}

async fn empty_folders_are_removed_after_a_while(app: TestApp) -> Result<()> {
    let gone = new_id();
    leave_behind(&app, gone, &[1])?;
    let _worker = app.worker()?;
    let kept = BTreeSet::from([own_file(&app).await?]);
    eventually("the removal", || async { Ok(stored(&app)? == kept) }).await?;
    let folder = app.files.path().join(format!("exports/{}/{gone}", app.organization_id));
    assert!(folder.is_dir(), "a young folder is kept");
    File::open(&folder)?.set_modified(SystemTime::now() - Duration::from_secs(120))?;
    eventually("the removal of the folder", || async { Ok(!folder.exists()) }).await?;
    assert_eq!(stored(&app)?, kept);
    Ok(())
}

on_both_databases! { TestApp {
    files_that_no_export_has_are_removed,
    failed_job_leaves_no_file,
    file_marked_as_removed_is_removed,
    files_of_open_jobs_are_kept,
    young_files_are_kept,
    many_files_are_removed_in_portions,
    files_of_another_installation_are_kept,
    foreign_files_are_kept_beside_own_exports,
    failed_sweep_is_logged_and_retention_goes_on,
    empty_folders_are_removed_after_a_while,
} }
