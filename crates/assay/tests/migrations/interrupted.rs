//! `assay migrate` and PostgreSQL killed in the middle of a migration: it is rolled back, and the next run completes it.

use anyhow::{Context, Result, ensure};
use assay_testkit::wait::wait_for;
use assay_testkit::{BlockedMigrations, Location, PostgresOptions, PrivatePostgres, has_client_connections};

use crate::installation::{Installation, LIMIT, Migrate, Service, services};

#[test]
fn killed_migration_is_completed_by_the_next_run_on_postgres() -> Result<()> {
    let undisturbed = Installation::on_postgres()?;
    undisturbed.run_migrate()?;
    for service in services() {
        let installation = Installation::on_postgres()?;
        // Kill each migration in turn.
        while !installation.schema(service)?.pending()?.is_empty() {
            kill_next(&installation, service)?;
            installation.schema(service)?.apply_next()?;
        }
        installation.run_migrate()?;
        ensure!(installation.dump()? == undisturbed.dump()?, "{}: not completed", service.owner.schema);
    }
    Ok(())
}

/// Kills `assay migrate` when the next migration is done but not committed.
fn kill_next(installation: &Installation, service: Service) -> Result<()> {
    let mut schema = installation.schema(service)?;
    let (next, before) = (schema.pending()?.first().cloned().context("nothing is pending")?, schema.dump()?);
    drop(schema);
    let administrator = installation.administrator_url()?;
    let blocked = BlockedMigrations::of(&administrator, service.owner.schema)?;
    let (migrate, blocked) = start_and_wait(installation, blocked)?;
    migrate.kill()?;
    drop(blocked);
    wait_for("the server to notice the kill", LIMIT, || {
        Ok((!has_client_connections(&administrator)?).then_some(()))
    })?;
    let mut schema = installation.schema(service)?;
    ensure!(schema.pending()?.first() == Some(&next), "{next} was applied by a process that was killed");
    ensure!(schema.dump()? == before, "a part of {next} stayed");
    Ok(())
}

fn start_and_wait(
    installation: &Installation,
    mut blocked: BlockedMigrations,
) -> Result<(Migrate, BlockedMigrations)> {
    let mut migrate = installation.start_migrate()?;
    wait_for("a migration to wait at its end", LIMIT, || {
        ensure!(!migrate.has_ended()?, "assay migrate ended instead of waiting");
        Ok(blocked.has_waiting_migration()?.then_some(()))
    })?;
    Ok((migrate, blocked))
}

#[test]
fn killed_migration_is_completed_by_the_next_run_on_sqlite() -> Result<()> {
    let undisturbed = Installation::on_sqlite()?;
    undisturbed.run_migrate()?;
    for service in services() {
        let count = Installation::on_sqlite()?.schema(service)?.pending()?.len();
        // SQLite cannot be blocked inside a transaction: kill some time after this many migrations.
        for applied in 0..=count {
            let installation = Installation::on_sqlite()?;
            let mut schema = installation.schema(service)?;
            let mut migrate = installation.start_migrate()?;
            wait_for("migrations to be applied", LIMIT, || {
                Ok((schema.applied().is_ok_and(|done| done.len() >= applied) || migrate.has_ended()?)
                    .then_some(()))
            })?;
            migrate.kill()?;
            installation.run_migrate()?;
            ensure!(installation.dump()? == undisturbed.dump()?, "{applied} of {}", service.owner.schema);
        }
    }
    Ok(())
}

#[test]
fn migration_is_completed_after_postgres_is_killed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let options = PostgresOptions {
        location: Location::Folder(folder.path().join("postgres")),
        durable: true,
        dies_with_us: true,
    };
    let server = PrivatePostgres::start(&options)?;
    let mut installation = Installation::on_server(&server.url())?;
    let undisturbed = Installation::on_postgres()?;
    undisturbed.run_migrate()?;
    let [.., service] = services();
    let mut schema = installation.schema(service)?;
    schema.apply_next()?;
    let (next, before) = (schema.pending()?.first().cloned().context("nothing is pending")?, schema.dump()?);
    let blocked = BlockedMigrations::of(&installation.administrator_url()?, service.owner.schema)?;
    let (migrate, blocked) = start_and_wait(&installation, blocked)?;
    // An immediate shutdown: nothing is finished, and the next start recovers.
    drop(server);
    let output = migrate.finish()?.failed()?;
    ensure!(output.contains(&next), "the failed migration is not named: {output}");
    drop((blocked, schema));

    let server = PrivatePostgres::start(&options)?;
    installation.server_moved_to(&server.url())?;
    let mut schema = installation.schema(service)?;
    ensure!(schema.pending()?.first() == Some(&next) && schema.dump()? == before, "a part of {next} stayed");
    installation.run_migrate()?;
    ensure!(installation.dump()? == undisturbed.dump()?, "not completed");
    Ok(())
}
