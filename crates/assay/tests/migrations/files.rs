//! The files that migrations are written in.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use crate::installation::{Installation, services};
use crate::repository::{files_below, read, root};

/// Every `up.sql` of the workspace: its path from the root, and its text.
pub fn up_files() -> Result<Vec<(String, String)>> {
    let folders = folders("postgres")?.into_iter().chain(folders("sqlite")?);
    let paths = folders.map(|folder| format!("{folder}/up.sql"));
    Ok(paths.map(|path| (path.clone(), read(&path))).collect())
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
            ensure!(!read(&format!("{folder}/{file}")).trim().is_empty(), "{folder}/{file} is empty");
        }
        let settings = root().join(folder).join("metadata.toml");
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

/// Every folder of a migration for one kind of database, by its path from the root: `…/migrations/KIND/VERSION_NAME`.
fn folders(kind: &str) -> Result<BTreeSet<String>> {
    let is_migration = |folder: &&str| folder.contains(&format!("/migrations/{kind}/"));
    let files = files_below("crates", &["tests", "target"]);
    let folders = files.iter().filter_map(|file| Some(file.rsplit_once('/')?.0));
    let found: BTreeSet<String> = folders.filter(is_migration).map(str::to_owned).collect();
    ensure!(found.len() > 5, "the migrations for {kind} were not found");
    Ok(found)
}

fn names(folders: &BTreeSet<String>) -> BTreeSet<String> {
    folders.iter().filter_map(|folder| folder.rsplit('/').next()).map(str::to_owned).collect()
}
