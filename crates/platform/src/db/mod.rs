//! Databases: PostgreSQL in production, SQLite for a single-command start.
//!
//! A store has statements for [`Postgres`] and for [`Sqlite`], where possible the same ones; the scheme of the configured
//! address decides which are used ([`on_database!`]). Every access goes through `run`, `run_long`, `read` or
//! `write`, which acquire a connection within a deadline and run the work on a blocking thread.

mod clock;
mod clock_skew;
#[cfg(feature = "distributed")]
mod connection_log;
#[cfg(feature = "distributed")]
mod connections;
mod error;
pub mod idempotency;
mod metrics;
mod migrations;
#[cfg(feature = "distributed")]
mod partitions;
#[cfg(feature = "distributed")]
mod postgres;
mod readiness;
mod sqlite;
mod static_sql;
mod stored_id;
#[cfg(feature = "distributed")]
mod tls;

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

pub use self::clock::{Clock, watch_clock, watch_clock_by};
pub use self::clock_skew::ClockSkew;
pub use self::error::DatabaseError;
pub use self::migrations::{Migrations, embed};
#[cfg(feature = "distributed")]
pub use self::partitions::{
    PartitionedTable, ensure_monthly_partitions, maintain_partitions, move_portion, prepare_partitions,
};
#[cfg(feature = "distributed")]
pub use self::postgres::Postgres;
pub use self::readiness::register_readiness;
pub use self::sqlite::Sqlite;
pub use self::static_sql::{StaticSql, static_sql};
pub use self::stored_id::StoredId;
pub use crate::on_database;

/// Wait for a connection before a call fails with [`DatabaseError::Unavailable`].
const CONNECTION_DEADLINE: Duration = Duration::from_millis(900);

/// Database settings of a service.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseSettings {
    /// `postgres://…` or `sqlite:PATH`.
    pub database_url: SecretString,
    /// Maximum number of connections.
    pub database_pool_size: u32,
}

/// An open database of either kind.
#[derive(Clone)]
pub enum Database {
    /// PostgreSQL.
    #[cfg(feature = "distributed")]
    Postgres(Postgres),
    /// SQLite.
    Sqlite(Sqlite),
}

/// Calls a function of the caller's module `postgres` or `sqlite`, with a connection to the field `database` of the store:
/// `on_database!(self, write, removal::expire(cutoff))` is `postgres::removal::expire(connection, cutoff)` or
/// `sqlite::removal::expire(connection, cutoff)`, in a transaction (`write`) or without one (`read`, which is `run / read`).
/// `run / write` is `run` on PostgreSQL and `write` on SQLite. The arguments are moved to the thread of the connection and
/// evaluated there.
#[macro_export]
macro_rules! on_database {
    ($store:ident, read, $($function:ident)::+ ($($argument:expr),* $(,)?) $(,)?) => {
        $crate::on_database!($store, run / read, $($function)::+ ($($argument),*))
    };
    ($store:ident, write, $($function:ident)::+ ($($argument:expr),* $(,)?) $(,)?) => {
        $crate::on_database!($store, write / write, $($function)::+ ($($argument),*))
    };
    ($store:ident, $on_postgres:ident / $on_sqlite:ident, $($function:ident)::+ ($($argument:expr),* $(,)?) $(,)?) => {
        match &$store.database {
            #[cfg(feature = "distributed")]
            $crate::db::Database::Postgres(database) => {
                database
                    .$on_postgres(move |connection| postgres::$($function)::+(connection $(, $argument)*))
                    .await
            }
            $crate::db::Database::Sqlite(database) => {
                database
                    .$on_sqlite(move |connection| sqlite::$($function)::+(connection $(, $argument)*))
                    .await
            }
        }
    };
}

impl Database {
    /// Opens the database at `settings.database_url`. No connection is made yet: the database may come up later.
    /// On PostgreSQL every connection works in `schema`.
    ///
    /// # Errors
    /// When the address has an unknown scheme, or demands PostgreSQL or TLS of a build without it.
    pub fn open(settings: &DatabaseSettings, schema: &'static str) -> Result<Self, DatabaseError> {
        let url = settings.database_url.expose_secret();
        let size = settings.database_pool_size;
        match url.split_once(':') {
            #[cfg(not(feature = "distributed"))]
            Some(("postgres" | "postgresql", _)) => Err(DatabaseError::NoPostgres { schema }),
            #[cfg(feature = "distributed")]
            Some(("postgres" | "postgresql", _)) => {
                tls::prepare(url, schema)?;
                Ok(Self::Postgres(Postgres::open(url, schema, size)))
            }
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(Sqlite::open(path, schema, size))),
            _ => Err(DatabaseError::UnknownScheme { schema }),
        }
    }

    /// Label in metrics: the schema of its service.
    pub fn name(&self) -> &'static str {
        match self {
            #[cfg(feature = "distributed")]
            Self::Postgres(postgres) => postgres.name(),
            Self::Sqlite(sqlite) => sqlite.name(),
        }
    }

    /// Whether the database is on a server, whose clock may differ from that of this process.
    fn has_server_clock(&self) -> bool {
        match self {
            #[cfg(feature = "distributed")]
            Self::Postgres(_) => true,
            Self::Sqlite(_) => false,
        }
    }

    /// Compares the clock of its server, if there is one, with `now`.
    #[cfg_attr(not(feature = "distributed"), expect(unused_variables, reason = "SQLite has no clock"))]
    async fn measure_clock(&self, now: clock::Now) -> Result<Option<ClockSkew>, DatabaseError> {
        match self {
            #[cfg(feature = "distributed")]
            Self::Postgres(postgres) => postgres.measure_clock(now).await.map(Some),
            Self::Sqlite(_) => Ok(None),
        }
    }

    /// Runs `SELECT 1`.
    ///
    /// # Errors
    /// When the database does not respond.
    pub async fn ping(&self) -> Result<(), DatabaseError> {
        match self {
            #[cfg(feature = "distributed")]
            Self::Postgres(postgres) => postgres.ping().await,
            Self::Sqlite(sqlite) => sqlite.ping().await,
        }
    }

    /// Applies the pending `migrations` and returns their names; safe to call from several processes at once.
    ///
    /// # Errors
    /// When the database cannot be reached or a migration fails; the next call continues after the last applied one.
    pub async fn migrate(&self, migrations: &'static [Migrations]) -> Result<Vec<String>, DatabaseError> {
        match self {
            #[cfg(feature = "distributed")]
            Self::Postgres(postgres) => postgres.migrate(migrations).await,
            Self::Sqlite(sqlite) => sqlite.migrate(migrations).await,
        }
    }

    /// Names of the pending migrations.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn pending_migrations(
        &self,
        migrations: &'static [Migrations],
    ) -> Result<Vec<String>, DatabaseError> {
        match self {
            #[cfg(feature = "distributed")]
            Self::Postgres(postgres) => postgres.pending_migrations(migrations).await,
            Self::Sqlite(sqlite) => sqlite.pending_migrations(migrations).await,
        }
    }
}
