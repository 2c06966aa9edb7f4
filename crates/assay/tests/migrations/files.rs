//! The files that migrations are written in.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::installation::{Installation, services};

/// Every `up.sql` of the workspace, by its path from the root.
pub fn up_files() -> Result<Vec<(String, String)>> {
    let root = root()?;
    let read = |folder: PathBuf| {
        let path = folder.join("up.sql");
        let sql = fs::read_to_string(&path).with_context(|| format!("no {}", path.display()))?;
        Ok((path.strip_prefix(&root)?.display().to_string(), sql))
    };
    folders("postgres")?.into_iter().chain(folders("sqlite")?).map(read).collect()
}

#[test]
fn every_migrations_folder_belongs_to_a_service() -> Result<()> {
    for (kind, installation) in
        [("postgres", Installation::on_postgres()?), ("sqlite", Installation::on_sqlite()?)]
    {
        let mut embedded = BTreeSet::new();
        for service in services() {
            embedded.extend(installation.schema(service)?.pending()?);
        }
        let written = names(&folders(kind)?);
        ensure!(written == embedded, "{kind}: in files {written:?}, in services {embedded:?}");
    }
    Ok(())
}

#[test]
fn every_migration_has_both_databases_and_directions() -> Result<()> {
    let (postgres, sqlite) = (folders("postgres")?, folders("sqlite")?);
    ensure!(names(&postgres) == names(&sqlite), "{:?} and {:?}", names(&postgres), names(&sqlite));
    for folder in postgres.iter().chain(&sqlite) {
        for file in ["up.sql", "down.sql"] {
            let path = folder.join(file);
            let sql = fs::read_to_string(&path).with_context(|| format!("no {}", path.display()))?;
            ensure!(!sql.trim().is_empty(), "{} is empty", path.display());
        }
        let settings = folder.join("metadata.toml");
        ensure!(!settings.exists(), "{}: every migration runs in a transaction", settings.display());
    }
    Ok(())
}

#[test]
fn migration_versions_are_unique_per_schema() -> Result<()> {
    let installation = Installation::on_sqlite()?;
    for service in services() {
        let names = installation.schema(service)?.pending()?;
        let versions: BTreeSet<&str> = names.iter().filter_map(|name| name.split('_').next()).collect();
        ensure!(versions.len() == names.len(), "{}: a version twice: {names:?}", service.owner.schema);
    }
    Ok(())
}

fn root() -> Result<PathBuf> {
    Ok(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?)
}

/// Every folder of a migration for one kind of database: `…/migrations/KIND/VERSION_NAME`, below the sources of a crate.
fn folders(kind: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![root()?.join("crates")];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let is_fixture = path.file_name().is_some_and(|name| name == "tests" || name == "target");
            if !path.is_dir() || is_fixture {
                continue;
            }
            if folder.ends_with(Path::new("migrations").join(kind)) {
                found.push(path);
            } else {
                waiting.push(path);
            }
        }
    }
    ensure!(found.len() > 5, "the migrations for {kind} were not found");
    Ok(found)
}

fn names(folders: &[PathBuf]) -> BTreeSet<String> {
    let name = |folder: &PathBuf| folder.file_name().map(|name| name.to_string_lossy().into_owned());
    folders.iter().filter_map(name).collect()
}
