//! Migrations: embedded in the executable, each in a transaction, applied under a lock. How to write and operate them:
//! `proto-docs/migrations.md`.

#[cfg(feature = "distributed")]
use diesel::connection::SimpleConnection;
use diesel::migration::MigrationSource;
#[cfg(feature = "distributed")]
use diesel::pg::{Pg, PgConnection};
#[cfg(feature = "distributed")]
use diesel::prelude::*;
#[cfg(feature = "distributed")]
use diesel::sql_types::Text;
use diesel::sqlite::{Sqlite, SqliteConnection};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness};

use super::DatabaseError;
#[cfg(feature = "distributed")]
use super::connections::STATEMENT_TIMEOUT;

/// Migrations of one crate, for both kinds of database.
pub struct Migrations {
    /// For PostgreSQL.
    pub postgres: EmbeddedMigrations,
    /// For SQLite.
    pub sqlite: EmbeddedMigrations,
}

/// Embeds a folder of migrations. A crate that calls this macro must also depend on `diesel_migrations`, which it expands to.
pub use diesel_migrations::embed_migrations as embed;

/// `lock_timeout` of a migration: it fails, and is rolled back, when a table stays locked for longer.
#[cfg(feature = "distributed")]
const TABLE_LOCK_SECONDS: u32 = 10;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[cfg(feature = "distributed")]
pub(super) fn apply_postgres(
    connection: &mut PgConnection,
    schema: &'static str,
    sets: &[Migrations],
) -> Result<Vec<String>, DatabaseError> {
    // A session-level advisory lock: PostgreSQL releases it when the connection ends, also after a crash.
    let lock = format!("hashtextextended('assay migrations of {schema}', 0)");
    // Waits for another migrating process, but only briefly for a locked table: every request to the table would queue
    // behind this wait.
    connection.batch_execute(&format!(
        "SET statement_timeout = 0; SELECT pg_advisory_lock({lock}); SET lock_timeout = '{TABLE_LOCK_SECONDS}s'"
    ))?;
    let result = apply_postgres_locked(connection, schema, sets);
    let unlocked = connection.batch_execute(&format!(
        "SELECT pg_advisory_unlock({lock}); SET lock_timeout = 0; SET statement_timeout = '{STATEMENT_TIMEOUT}'"
    ));
    // The migration's error is more specific than that of a broken connection.
    let applied = result?;
    unlocked?;
    Ok(applied)
}

#[cfg(feature = "distributed")]
fn apply_postgres_locked(
    connection: &mut PgConnection,
    schema: &'static str,
    sets: &[Migrations],
) -> Result<Vec<String>, DatabaseError> {
    let exists: bool = diesel::select(
        diesel::dsl::sql::<diesel::sql_types::Bool>("EXISTS (SELECT FROM pg_namespace WHERE nspname = ")
            .bind::<Text, _>(schema)
            .sql(")"),
    )
    .get_result(connection)?;
    // The database user may lack the right to create a schema; then an administrator has created it.
    if !exists {
        connection.batch_execute(&format!("CREATE SCHEMA {schema}"))?;
    }
    refuse_state_before_first_release::<Pg, _>(connection, schema, sets.iter().map(|set| &set.postgres))?;
    let mut applied = Vec::new();
    for set in sets {
        while let Some(name) = apply_next::<Pg, _>(connection, &set.postgres)? {
            applied.push(name);
        }
    }
    Ok(applied)
}

pub(super) fn apply_sqlite(
    connection: &mut SqliteConnection,
    schema: &'static str,
    sets: &[Migrations],
) -> Result<Vec<String>, DatabaseError> {
    refuse_state_before_first_release::<Sqlite, _>(connection, schema, sets.iter().map(|set| &set.sqlite))?;
    let mut applied = Vec::new();
    for set in sets {
        // SQLite has only the lock of the file, so the query for pending migrations is part of the transaction.
        while let Some(name) =
            connection.immediate_transaction(|connection| apply_next::<Sqlite, _>(connection, &set.sqlite))?
        {
            applied.push(name);
        }
    }
    Ok(applied)
}

pub(super) fn pending<'s, DB, C>(
    connection: &mut C,
    schema: &'static str,
    sources: impl Iterator<Item = &'s EmbeddedMigrations> + Clone,
) -> Result<Vec<String>, DatabaseError>
where
    DB: diesel::backend::Backend,
    C: MigrationHarness<DB>,
    EmbeddedMigrations: MigrationSource<DB>,
{
    refuse_state_before_first_release::<DB, _>(connection, schema, sources.clone())?;
    let mut names = Vec::new();
    for source in sources {
        let pending = connection.pending_migrations(Borrowed(source)).map_err(migration_error)?;
        names.extend(pending.iter().map(|migration| migration.name().to_string()));
    }
    Ok(names)
}

/// Refuses a schema with a migration older than all known ones: it was made before 0.1.0, which replaced all migrations by later
/// ones. An unknown later migration is accepted: it belongs to a newer release, and this release works on its schema.
fn refuse_state_before_first_release<'s, DB, C>(
    connection: &mut C,
    schema: &'static str,
    sources: impl Iterator<Item = &'s EmbeddedMigrations>,
) -> Result<(), DatabaseError>
where
    DB: diesel::backend::Backend,
    C: MigrationHarness<DB>,
    EmbeddedMigrations: MigrationSource<DB>,
{
    let mut known = Vec::new();
    for source in sources {
        known.extend(source.migrations().map_err(migration_error)?);
    }
    let oldest_known = known.iter().map(|migration| migration.name().version()).min();
    let applied = connection.applied_migrations().map_err(migration_error)?;
    let oldest_applied = applied.into_iter().min();
    match oldest_applied.filter(|applied| oldest_known.is_some_and(|known| *applied < known)) {
        Some(version) => Err(DatabaseError::BeforeFirstRelease { schema, version: version.to_string() }),
        None => Ok(()),
    }
}

/// Applies the next pending migration and returns its name.
fn apply_next<DB, C>(connection: &mut C, source: &EmbeddedMigrations) -> Result<Option<String>, DatabaseError>
where
    DB: diesel::backend::Backend,
    C: MigrationHarness<DB>,
    EmbeddedMigrations: MigrationSource<DB>,
{
    let pending = connection.pending_migrations(Borrowed(source)).map_err(migration_error)?;
    let Some(migration) = pending.first() else { return Ok(None) };
    let name = migration.name().to_string();
    connection.run_migration(migration).map_err(|error| failed_migration(&name, &error))?;
    Ok(Some(name))
}

/// Passes a borrowed source to the harness, which takes its source by value.
struct Borrowed<'s>(&'s EmbeddedMigrations);

impl<DB> MigrationSource<DB> for Borrowed<'_>
where
    DB: diesel::backend::Backend,
    EmbeddedMigrations: MigrationSource<DB>,
{
    fn migrations(&self) -> diesel::migration::Result<Vec<Box<dyn diesel::migration::Migration<DB>>>> {
        self.0.migrations()
    }
}

/// Adds the name of the migration, which is missing in errors of recording the migration as applied.
fn failed_migration(name: &str, error: &BoxError) -> DatabaseError {
    let reason = error.to_string();
    let reason = reason.strip_prefix(&format!("Failed to run {name} with: ")).unwrap_or(&reason);
    DatabaseError::Migration(format!("{name}: {reason}"))
}

fn migration_error(error: BoxError) -> DatabaseError {
    DatabaseError::Migration(error.to_string())
}
