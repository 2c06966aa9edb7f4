//! Applies and reverts migrations one at a time, and dumps the schema in between.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, anyhow, ensure};
use assay_platform::db::Migrations;
use diesel::backend::Backend;
use diesel::connection::SimpleConnection as _;
use diesel::migration::{Migration, MigrationSource as _};
use diesel::{Connection as _, PgConnection, RunQueryDsl as _, SqliteConnection, sql_query};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness};

use crate::{database_users::quote_name, postgres::client_program, query::Row};

/// The schema of one service, on a connection of its own.
pub struct SchemaSteps {
    sets: &'static [Migrations],
    backend: OpenSchema,
}

enum OpenSchema {
    Postgres { connection: PgConnection, url: String, schema: &'static str },
    Sqlite { connection: SqliteConnection },
}

/// The same call for the steps of either database, whose types differ.
macro_rules! on_steps {
    ($schema:expr, |$steps:ident| $call:expr) => {
        match &mut $schema.backend {
            OpenSchema::Postgres { connection, .. } => {
                let $steps = Steps::on(connection, $schema.sets, |set| &set.postgres)?;
                $call
            }
            OpenSchema::Sqlite { connection } => {
                let $steps = Steps::on(connection, $schema.sets, |set| &set.sqlite)?;
                $call
            }
        }
    };
}

impl SchemaSteps {
    /// On PostgreSQL; `url` is that of the PostgreSQL user who owns the schema.
    ///
    /// # Errors
    /// When PostgreSQL cannot be reached.
    pub fn postgres(url: &str, schema: &'static str, sets: &'static [Migrations]) -> Result<Self> {
        let mut connection =
            PgConnection::establish(url).context("cannot connect as the owner of the schema")?;
        connection.batch_execute(&format!("SET search_path TO {}", quote_name(schema)))?;
        Ok(Self { sets, backend: OpenSchema::Postgres { connection, url: url.to_owned(), schema } })
    }

    /// On SQLite, in the file at `path`.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn sqlite(path: &Path, sets: &'static [Migrations]) -> Result<Self> {
        let connection = SqliteConnection::establish(path.to_str().context("the path is no text")?)?;
        Ok(Self { sets, backend: OpenSchema::Sqlite { connection } })
    }

    /// Names of the applied migrations, in order.
    ///
    /// # Errors
    /// When the database refuses.
    pub fn applied(&mut self) -> Result<Vec<String>> {
        on_steps!(self, |steps| Ok(names(&steps.applied)))
    }

    /// Names of the pending migrations, in order.
    ///
    /// # Errors
    /// When the database refuses.
    pub fn pending(&mut self) -> Result<Vec<String>> {
        on_steps!(self, |steps| Ok(names(&steps.pending)))
    }

    /// Applies the next migration: its name, or `None` when all of them are applied.
    ///
    /// # Errors
    /// When it fails.
    pub fn apply_next(&mut self) -> Result<Option<String>> {
        on_steps!(self, |steps| steps.up())
    }

    /// Reverts the migration that was applied last: its name, or `None` when none is applied.
    ///
    /// # Errors
    /// When it fails.
    pub fn revert_last(&mut self) -> Result<Option<String>> {
        on_steps!(self, |steps| steps.down())
    }

    /// The schema as SQL.
    ///
    /// # Errors
    /// When the database refuses, or `pg_dump` is not where the server's programs are.
    pub fn dump(&mut self) -> Result<String> {
        match &mut self.backend {
            OpenSchema::Postgres { url, schema, .. } => dump_postgres(url, schema),
            OpenSchema::Sqlite { connection } => dump_sqlite(connection),
        }
    }
}

/// All migrations, in the order of their sets, and in each set by version.
struct Steps<'c, C, DB: Backend> {
    connection: &'c mut C,
    applied: Vec<Box<dyn Migration<DB>>>,
    pending: Vec<Box<dyn Migration<DB>>>,
}

impl<'c, C: MigrationHarness<DB>, DB: Backend> Steps<'c, C, DB> {
    fn on(
        connection: &'c mut C,
        sets: &[Migrations],
        kind: fn(&Migrations) -> &EmbeddedMigrations,
    ) -> Result<Self> {
        let known = connection.applied_migrations().map_err(|error| anyhow!(error))?;
        let mut steps = Self { connection, applied: Vec::new(), pending: Vec::new() };
        for set in sets {
            let mut all: Vec<Box<dyn Migration<DB>>> =
                kind(set).migrations().map_err(|error| anyhow!(error))?;
            all.sort_by(|a, b| a.name().version().cmp(&b.name().version()));
            for step in all {
                let is_applied = known.contains(&step.name().version().as_owned());
                if is_applied { steps.applied.push(step) } else { steps.pending.push(step) }
            }
        }
        Ok(steps)
    }

    fn up(self) -> Result<Option<String>> {
        let Some(step) = self.pending.first() else { return Ok(None) };
        self.connection.run_migration(step).map_err(|error| anyhow!(error))?;
        Ok(Some(step.name().to_string()))
    }

    fn down(self) -> Result<Option<String>> {
        let Some(step) = self.applied.last() else { return Ok(None) };
        let name = step.name().to_string();
        self.connection.revert_migration(step).map_err(|error| anyhow!(error)).context(name.clone())?;
        Ok(Some(name))
    }
}

fn names<DB: Backend>(steps: &[Box<dyn Migration<DB>>]) -> Vec<String> {
    steps.iter().map(|step| step.name().to_string()).collect()
}

fn dump_postgres(url: &str, schema: &str) -> Result<String> {
    let program = client_program("pg_dump")?;
    let output = Command::new(&program)
        .args(["--schema-only", "--schema", schema, "--dbname", url])
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let reason = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "pg_dump of the schema {schema}: {reason}");
    let text = String::from_utf8(output.stdout)?;
    // Newer minor versions put a random key into the dump, which differs each time.
    let lines =
        text.lines().filter(|line| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict"));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

fn dump_sqlite(connection: &mut SqliteConnection) -> Result<String> {
    let query = "SELECT type || ' ' || name || ' of ' || tbl_name || ': ' || coalesce(sql, '') AS value \
                 FROM sqlite_master ORDER BY type, name";
    let definitions: Vec<Row> = sql_query(query).load(connection)?;
    Ok(definitions.into_iter().map(|definition| definition.value).collect::<Vec<_>>().join("\n"))
}
