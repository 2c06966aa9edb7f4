//! Databases for tests, cloned from a template.

use std::{
    cell::Cell,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use anyhow::{Result, bail, ensure};
use assay_testkit::{SchemaOwner, Template, TestDatabase, random_name, services};
use diesel::{Connection as _, PgConnection, RunQueryDsl as _, connection::SimpleConnection as _, sql_query};

const INGEST: SchemaOwner = SchemaOwner { user: "assay_ingest", schema: "ingest" };

fn migrate(url: &str) -> Result<()> {
    Ok(PgConnection::establish(url)?.batch_execute("CREATE TABLE words (word text)")?)
}

fn rows(url: &str, table: &str) -> Result<usize> {
    Ok(sql_query(format!("SELECT * FROM {table}")).execute(&mut PgConnection::establish(url)?)?)
}

fn insert(url: &str) -> Result<()> {
    Ok(PgConnection::establish(url)?.batch_execute("INSERT INTO words VALUES ('x')")?)
}

/// A template unique to this test run, for shared servers.
fn fresh_template() -> Result<Template> {
    Ok(Template::new("words", random_name("fingerprint")?))
}

#[test]
fn every_test_gets_its_own_migrated_database() -> Result<()> {
    let template = fresh_template()?;
    let first = TestDatabase::create(&template, migrate)?;
    let second = TestDatabase::create(&template, migrate)?;
    insert(first.url())?;
    ensure!(rows(first.url(), "words")? == 1);
    ensure!(rows(second.url(), "words")? == 0);
    Ok(())
}

#[test]
fn template_is_migrated_once_under_concurrency() -> Result<()> {
    let template = fresh_template()?;
    let server = services::postgres()?;
    let migrations = AtomicUsize::new(0);
    thread::scope(|scope| {
        let create = || {
            TestDatabase::create_on(server, &template, |url| {
                migrations.fetch_add(1, Ordering::Relaxed);
                migrate(url)
            })
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(create)).collect();
        for thread in threads {
            match thread.join() {
                Ok(database) => ensure!(rows(database?.url(), "words")? == 0),
                Err(_panic) => bail!("a thread panicked"),
            }
        }
        Ok(())
    })?;
    ensure!(migrations.load(Ordering::Relaxed) == 1);
    Ok(())
}

#[test]
fn each_fingerprint_has_its_own_template() -> Result<()> {
    let migrations = Cell::new(0);
    for template in [fresh_template()?, fresh_template()?] {
        let _database = TestDatabase::create(&template, |url| {
            migrations.set(migrations.get() + 1);
            migrate(url)
        })?;
    }
    ensure!(migrations.get() == 2);
    Ok(())
}

#[test]
fn failed_migration_is_retried_by_the_next_caller() -> Result<()> {
    let template = fresh_template()?;
    let broken = TestDatabase::create(&template, |url| {
        migrate(url)?;
        bail!("the second table cannot be made")
    });
    let message = broken.err().map(|error| format!("{error:#}"));
    ensure!(message.is_some_and(|text| text.contains("the second table cannot be made")));
    let database = TestDatabase::create(&template, migrate)?;
    ensure!(rows(database.url(), "words")? == 0);
    Ok(())
}

#[test]
fn database_is_dropped_despite_open_connections() -> Result<()> {
    let database = TestDatabase::create(&fresh_template()?, migrate)?;
    let url = database.url().to_owned();
    let _open = PgConnection::establish(&url)?;
    drop(database);
    let refusal = PgConnection::establish(&url).err().map(|error| error.to_string());
    ensure!(refusal.is_some_and(|text| text.contains("does not exist")));
    Ok(())
}

#[test]
fn template_belongs_to_the_database_user_of_its_service() -> Result<()> {
    let template = fresh_template()?.owned_by(INGEST);
    let database = TestDatabase::create(&template, |url| {
        Ok(PgConnection::establish(url)?.batch_execute("CREATE TABLE ingest.words (word text)")?)
    })?;
    ensure!(database.url().contains("assay_ingest:"));
    ensure!(rows(database.url(), "ingest.words")? == 0);
    let mut connection = PgConnection::establish(database.url())?;
    ensure!(connection.batch_execute("CREATE TABLE public.words (word text)").is_err());
    ensure!(connection.batch_execute("CREATE SCHEMA another").is_err());
    Ok(())
}

#[test]
fn template_of_several_services_has_all_database_users() -> Result<()> {
    const EXPORT: SchemaOwner = SchemaOwner { user: "assay_export", schema: "export" };
    let template = fresh_template()?.owned_by(INGEST).owned_by(EXPORT);
    let database = TestDatabase::create(&template, |_url| Ok(()))?;
    for (service, own, foreign) in [(INGEST, "ingest", "export"), (EXPORT, "export", "ingest")] {
        let mut connection = PgConnection::establish(&database.url_as(service)?)?;
        connection.batch_execute(&format!("CREATE TABLE {own}.words (word text)"))?;
        let refusal = connection.batch_execute(&format!("CREATE TABLE {foreign}.other (word text)"));
        ensure!(refusal.is_err(), "{} may write into {foreign}", service.user);
    }
    Ok(())
}

#[test]
fn random_names_differ_and_keep_their_prefix() -> Result<()> {
    let (first, second) = (random_name("events")?, random_name("events")?);
    ensure!(first != second && first.starts_with("events-"));
    Ok(())
}
