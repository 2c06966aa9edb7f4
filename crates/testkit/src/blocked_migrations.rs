//! Blocks migrations on PostgreSQL just before their commit, so that a test can kill the process that runs them.

use anyhow::{Context as _, Result};
use diesel::{PgConnection, RunQueryDsl as _, connection::SimpleConnection as _, sql_query, sql_types::Text};

use crate::database_users::{self, quote_name};

/// While this value lives, migrations of the schema do their work and then wait for a lock, before they are recorded as
/// applied and committed.
pub struct BlockedMigrations {
    connection: PgConnection,
    table: String,
}

impl BlockedMigrations {
    /// Blocks the migrations of `schema`, which must have at least one applied migration.
    ///
    /// # Errors
    /// When PostgreSQL cannot be reached, or no migration was ever applied there.
    pub fn of(administrator_url: &str, schema: &str) -> Result<Self> {
        let mut connection = database_users::connect(administrator_url)?;
        let table = format!("{}.__diesel_schema_migrations", quote_name(schema));
        // This lock blocks writers but not readers.
        let lock = format!("BEGIN; LOCK TABLE {table} IN SHARE MODE");
        connection.batch_execute(&lock).with_context(|| format!("cannot lock {table}"))?;
        Ok(Self { connection, table })
    }

    /// Whether a migration has finished its work and waits for the lock.
    ///
    /// # Errors
    /// When PostgreSQL does not answer.
    pub fn has_waiting_migration(&mut self) -> Result<bool> {
        let query = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = to_regclass($1) \
                     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        let waiting = sql_query(query).bind::<Text, _>(&self.table).execute(&mut self.connection)?;
        Ok(waiting > 0)
    }
}

/// Whether a non-administrator is connected to the database of `administrator_url`. The server notices a killed client
/// only when it next talks to it.
///
/// # Errors
/// When PostgreSQL does not answer.
pub fn has_client_connections(administrator_url: &str) -> Result<bool> {
    let query = "SELECT 1 FROM pg_stat_activity \
                 WHERE datname = current_database() AND usename <> current_user";
    Ok(sql_query(query).execute(&mut database_users::connect(administrator_url)?)? > 0)
}
