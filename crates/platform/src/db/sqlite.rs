//! SQLite: the start in one command. One file a service, write-ahead log, one writer at a time.

use std::sync::Arc;
use std::sync::Mutex;

use diesel::connection::SimpleConnection;
use diesel::r2d2::{ConnectionManager, CustomizeConnection, Error, Pool, PooledConnection};
use diesel::sqlite::SqliteConnection;

use super::{CONNECTION_DEADLINE, DatabaseError, Migrations, migrations};
use crate::runtime::blocking;

type Manager = ConnectionManager<SqliteConnection>;

/// A pool of connections to one file. Writers queue up here rather than in SQLite, whose waiting is a lottery.
#[derive(Clone)]
pub struct Sqlite {
    pool: Pool<Manager>,
    writer: Arc<Mutex<()>>,
}

impl Sqlite {
    pub(super) fn open(path: &str, size: u32) -> Self {
        let pool = Pool::builder()
            .max_size(size)
            .min_idle(Some(0))
            .connection_timeout(CONNECTION_DEADLINE)
            .test_on_check_out(false)
            .connection_customizer(Box::new(Customizer))
            .build_unchecked(Manager::new(path));
        Self { pool, writer: Arc::default() }
    }

    /// Does `work` that only reads.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] when there is no connection within a second, else what `work` says.
    pub async fn read<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut SqliteConnection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        let this = self.clone();
        let result = blocking(move || work(&mut *this.connection()?)).await;
        result.map_err(DatabaseError::from)?
    }

    /// Does `work` that writes, in one transaction: all of it or, on an error, nothing.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut SqliteConnection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DatabaseError> + From<diesel::result::Error> + Send + 'static,
    {
        let this = self.clone();
        let result = blocking(move || this.write_blocking(work)).await;
        result.map_err(DatabaseError::from)?
    }

    /// [`Self::write`] on the calling thread, which must be one that may block.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn write_blocking<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut SqliteConnection) -> Result<T, E>,
        E: From<DatabaseError> + From<diesel::result::Error>,
    {
        // A writer that panicked has rolled back: the lock guards nothing that could be broken.
        let _turn = self.writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.connection()?.immediate_transaction(work)
    }

    fn connection(&self) -> Result<PooledConnection<Manager>, DatabaseError> {
        self.pool.get().map_err(|error| DatabaseError::Unavailable(error.to_string()))
    }

    pub(super) async fn ping(&self) -> Result<(), DatabaseError> {
        self.read(|connection| Ok(connection.batch_execute("SELECT 1")?)).await
    }

    pub(super) async fn migrate(&self, sets: &'static [Migrations]) -> Result<Vec<String>, DatabaseError> {
        let this = self.clone();
        let work = move || {
            let _turn = this.writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            migrations::apply_sqlite(&mut *this.connection()?, sets)
        };
        blocking(work).await?
    }

    pub(super) async fn pending_migrations(
        &self,
        sets: &'static [Migrations],
    ) -> Result<Vec<String>, DatabaseError> {
        self.read(move |connection| migrations::pending_sqlite(connection, sets)).await
    }
}

#[derive(Debug)]
struct Customizer;

impl CustomizeConnection<SqliteConnection, Error> for Customizer {
    fn on_acquire(&self, connection: &mut SqliteConnection) -> Result<(), Error> {
        // FULL: a commit survives the loss of power, which is what a 202 promises.
        connection
            .batch_execute(
                "PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
                 PRAGMA foreign_keys = ON;",
            )
            .map_err(Error::QueryError)
    }
}
