//! Stops migrations on PostgreSQL in the middle, so that a test can kill what runs them.

use anyhow::{Context as _, Result};
use diesel::{PgConnection, RunQueryDsl as _, connection::SimpleConnection as _, sql_query, sql_types::Text};

use crate::roles::{self, quote_name};

/// As long as this value lives, a migration of the schema does all its work and then waits, before it is noted as
/// applied and committed.
pub struct HeldMigrations {
    connection: PgConnection,
    table: String,
}

impl HeldMigrations {
    /// Holds the migrations of `schema`, in which there was one before. `administrator_url` names the database.
    ///
    /// # Errors
    /// When PostgreSQL cannot be reached, or no migration was ever applied there.
    pub fn of(administrator_url: &str, schema: &str) -> Result<Self> {
        let mut connection = roles::connect(administrator_url)?;
        let table = format!("{}.__diesel_schema_migrations", quote_name(schema));
        // Readers pass this lock, writers do not.
        let hold = format!("BEGIN; LOCK TABLE {table} IN SHARE MODE");
        connection.batch_execute(&hold).with_context(|| format!("cannot hold {table}"))?;
        Ok(Self { connection, table })
    }

    /// Whether a migration has come to its end and waits there.
    ///
    /// # Errors
    /// When PostgreSQL does not answer.
    pub fn is_one_waiting(&mut self) -> Result<bool> {
        let query = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = to_regclass($1) \
                     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        let waiting = sql_query(query).bind::<Text, _>(&self.table).execute(&mut self.connection)?;
        Ok(waiting > 0)
    }
}

/// Whether somebody who is no administrator is connected to the database of `administrator_url`. The server notices that
/// a client was killed only when it wants to talk to it.
///
/// # Errors
/// When PostgreSQL does not answer.
pub fn is_in_use(administrator_url: &str) -> Result<bool> {
    let query = "SELECT 1 FROM pg_stat_activity \
                 WHERE datname = current_database() AND usename <> current_user";
    Ok(sql_query(query).execute(&mut roles::connect(administrator_url)?)? > 0)
}
