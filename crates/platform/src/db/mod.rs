//! Databases: PostgreSQL in production, SQLite for the start in one command.
//!
//! A store has two plain implementations, one on [`Postgres`] and one on [`Sqlite`]; which one is used is decided
//! by the scheme of the configured address. Every access goes through `run`, which takes a connection and does the
//! work away from the threads that serve requests, with a deadline for getting the connection.

mod connections;
mod error;
pub mod idempotency;
mod metrics;
mod migrations;
mod partitions;
mod postgres;
mod readiness;
mod sqlite;
mod static_sql;
mod stored_id;

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

pub use self::error::DatabaseError;
pub use self::migrations::{Migrations, embed};
pub use self::partitions::{PartitionedTable, ensure_monthly_partitions};
pub use self::postgres::Postgres;
pub use self::readiness::register_readiness;
pub use self::sqlite::Sqlite;
pub use self::static_sql::{StaticSql, static_sql};
pub use self::stored_id::StoredId;

/// How long a caller waits for a connection before it is told that the database is unavailable.
const CONNECTION_DEADLINE: Duration = Duration::from_millis(900);

/// Where a service keeps its records.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseSettings {
    /// `postgres://…` or `sqlite:PATH`.
    pub database_url: SecretString,
    /// Connections at most.
    pub database_pool_size: u32,
}

/// An open database of either kind.
#[derive(Clone)]
pub enum Database {
    /// PostgreSQL.
    Postgres(Postgres),
    /// SQLite.
    Sqlite(Sqlite),
}

impl Database {
    /// Opens the database at `settings.database_url`. No connection is made yet: the database may come up later.
    /// On PostgreSQL every connection works in `schema`.
    ///
    /// # Errors
    /// When the address has an unknown scheme.
    pub fn open(settings: &DatabaseSettings, schema: &'static str) -> Result<Self, DatabaseError> {
        let url = settings.database_url.expose_secret();
        let size = settings.database_pool_size;
        match url.split_once(':') {
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(Postgres::open(url, schema, size))),
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(Sqlite::open(path, schema, size))),
            _ => Err(DatabaseError::UnknownScheme { schema }),
        }
    }

    /// What metrics call it: the schema of its service.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Postgres(postgres) => postgres.name(),
            Self::Sqlite(sqlite) => sqlite.name(),
        }
    }

    /// Whether the database answers.
    ///
    /// # Errors
    /// When it does not.
    pub async fn ping(&self) -> Result<(), DatabaseError> {
        match self {
            Self::Postgres(postgres) => postgres.ping().await,
            Self::Sqlite(sqlite) => sqlite.ping().await,
        }
    }

    /// Applies what is pending of `migrations`; safe to be called by several processes at once.
    ///
    /// # Errors
    /// When the database cannot be reached or a migration fails; the next call goes on where this one ended.
    pub async fn migrate(&self, migrations: &'static [Migrations]) -> Result<Vec<String>, DatabaseError> {
        match self {
            Self::Postgres(postgres) => postgres.migrate(migrations).await,
            Self::Sqlite(sqlite) => sqlite.migrate(migrations).await,
        }
    }

    /// The names of migrations that are not applied yet.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn pending_migrations(
        &self,
        migrations: &'static [Migrations],
    ) -> Result<Vec<String>, DatabaseError> {
        match self {
            Self::Postgres(postgres) => postgres.pending_migrations(migrations).await,
            Self::Sqlite(sqlite) => sqlite.pending_migrations(migrations).await,
        }
    }
}
