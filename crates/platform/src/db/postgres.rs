//! PostgreSQL: production.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::r2d2::{ConnectionManager, CustomizeConnection, Error, Pool, PooledConnection};

use super::{CONNECTION_DEADLINE, DatabaseError, Migrations, migrations};
use crate::runtime::blocking;

type Manager = ConnectionManager<PgConnection>;

/// A pool of connections that work in one schema.
#[derive(Clone)]
pub struct Postgres {
    pool: Pool<Manager>,
    schema: &'static str,
}

impl Postgres {
    pub(super) fn open(url: &str, schema: &'static str, size: u32) -> Self {
        let pool = Pool::builder()
            .max_size(size)
            .min_idle(Some(0))
            .connection_timeout(CONNECTION_DEADLINE)
            .idle_timeout(Some(Duration::from_secs(300)))
            .test_on_check_out(false)
            .connection_customizer(Box::new(Customizer { schema }))
            .build_unchecked(Manager::new(with_timeout(url)));
        Self { pool, schema }
    }

    /// Does `work` with a connection, on a thread of its own.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] when there is no connection within a second, else what `work` says.
    pub async fn run<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut PgConnection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        let this = self.clone();
        let result = blocking(move || this.run_blocking(work)).await;
        result.map_err(DatabaseError::from)?
    }

    /// Does `work` with a connection on the calling thread, which must be one that may block.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_blocking<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut PgConnection) -> Result<T, E>,
        E: From<DatabaseError>,
    {
        work(&mut *self.connection()?)
    }

    fn connection(&self) -> Result<PooledConnection<Manager>, DatabaseError> {
        self.pool.get().map_err(|error| DatabaseError::Unavailable(error.to_string()))
    }

    pub(super) async fn ping(&self) -> Result<(), DatabaseError> {
        self.run(|connection| Ok(connection.batch_execute("SELECT 1")?)).await
    }

    pub(super) async fn migrate(&self, sets: &'static [Migrations]) -> Result<Vec<String>, DatabaseError> {
        let schema = self.schema;
        self.run(move |connection| migrations::apply_postgres(connection, schema, sets)).await
    }

    pub(super) async fn pending_migrations(
        &self,
        sets: &'static [Migrations],
    ) -> Result<Vec<String>, DatabaseError> {
        self.run(move |connection| migrations::pending_postgres(connection, sets)).await
    }
}

/// A database that does not answer must not hold a caller longer than the deadline.
fn with_timeout(url: &str) -> String {
    if url.contains("connect_timeout=") {
        return url.to_owned();
    }
    let separator = if url.contains('?') { '&' } else { '?' };
    // libpq knows whole seconds and treats 1 as 2.
    format!("{url}{separator}connect_timeout=2&keepalives_idle=30&tcp_user_timeout=10000")
}

#[derive(Debug)]
struct Customizer {
    schema: &'static str,
}

impl CustomizeConnection<PgConnection, Error> for Customizer {
    fn on_acquire(&self, connection: &mut PgConnection) -> Result<(), Error> {
        let statement = format!(
            "SET search_path TO {}; SET statement_timeout = '30s'; SET idle_in_transaction_session_timeout = '60s'",
            self.schema
        );
        connection.batch_execute(&statement).map_err(Error::QueryError)
    }
}
