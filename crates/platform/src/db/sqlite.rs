//! SQLite, for the start in one command: one file per service, write-ahead log, one writer at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use diesel::r2d2::{ConnectionManager, CustomizeConnection, Error, Pool, PooledConnection};
use diesel::sqlite::SqliteConnection;
use futures_util::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::metrics::{GaugeGuard, PoolMetrics};
use super::{CONNECTION_DEADLINE, DatabaseError, Migrations, migrations};
use crate::runtime::{Erased, blocking, restore, spawn_and_wait};

type Manager = ConnectionManager<SqliteConnection>;

/// Type-erased work: the code that runs it is compiled once, not for each call. It returns a `Result<T, E>` of the caller.
type Work = Box<dyn FnOnce() -> Erased + Send>;

/// Longest wait for the write permit.
const WRITE_PERMIT_DEADLINE: Duration = Duration::from_secs(8);

/// Longest wait of a migration for the write permit, which another migration may hold.
const MIGRATION_DEADLINE: Duration = Duration::from_secs(600);

/// A connection pool for one file. Writers queue here and not in SQLite, whose busy handler is not fair. A waiting call
/// holds no thread, so at most as many threads are busy as there are connections.
#[derive(Clone)]
pub struct Sqlite {
    name: &'static str,
    pool: Pool<Manager>,
    readers: Arc<Semaphore>,
    writers: Arc<Semaphore>,
    metrics: PoolMetrics,
}

impl Sqlite {
    pub(super) fn open(path: &str, name: &'static str, size: u32) -> Self {
        let pool = Pool::builder()
            .max_size(size)
            .min_idle(Some(0))
            .connection_timeout(CONNECTION_DEADLINE)
            .test_on_check_out(false)
            .connection_customizer(Box::new(Customizer))
            .build_unchecked(Manager::new(path));
        // With several connections, one is reserved for the writer.
        let read_permits = usize::try_from(size.saturating_sub(1).max(1)).unwrap_or(Semaphore::MAX_PERMITS);
        let (readers, writers) = (Arc::new(Semaphore::new(read_permits)), Arc::new(Semaphore::new(1)));
        Self { name, pool, readers, writers, metrics: PoolMetrics::new(name, size) }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Runs read-only `work`.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] without a connection within a second, else the error of `work`.
    pub async fn read<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut SqliteConnection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        let this = self.clone();
        self.with_permit(&self.readers, CONNECTION_DEADLINE, move || work(&mut *this.connection()?)).await
    }

    /// Runs `work` in one write transaction, rolled back on an error.
    ///
    /// # Errors
    /// As [`Self::read`]; a writer waits up to eight seconds for the write permit.
    pub async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut SqliteConnection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DatabaseError> + From<diesel::result::Error> + Send + 'static,
    {
        let this = self.clone();
        let work = move || this.connection()?.immediate_transaction(work);
        self.with_permit(&self.writers, WRITE_PERMIT_DEADLINE, work).await
    }

    fn connection(&self) -> Result<PooledConnection<Manager>, DatabaseError> {
        self.pool.get().map_err(|error| {
            self.metrics.count_unavailable();
            DatabaseError::Unavailable(error.to_string())
        })
    }

    pub(super) async fn ping(&self) -> Result<(), DatabaseError> {
        self.read(|connection| Ok(connection.batch_execute("SELECT 1")?)).await
    }

    pub(super) async fn migrate(&self, sets: &'static [Migrations]) -> Result<Vec<String>, DatabaseError> {
        let this = self.clone();
        let work = move || migrations::apply_sqlite(&mut *this.connection()?, this.name, sets);
        self.with_permit(&self.writers, MIGRATION_DEADLINE, work).await
    }

    pub(super) async fn pending_migrations(
        &self,
        sets: &'static [Migrations],
    ) -> Result<Vec<String>, DatabaseError> {
        let schema = self.name;
        let sources = sets.iter().map(|set| &set.sqlite);
        let pending = move |connection: &mut SqliteConnection| {
            migrations::pending::<diesel::sqlite::Sqlite, _>(connection, schema, sources)
        };
        self.read(pending).await
    }

    /// Runs `work` on a blocking thread with a permit of `semaphore`, after a `wait` at most.
    async fn with_permit<T, E, W>(&self, semaphore: &Arc<Semaphore>, wait: Duration, work: W) -> Result<T, E>
    where
        W: FnOnce() -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        let work = move || Box::new(work()) as Erased;
        restore(self.run_erased(semaphore, wait, Box::new(work)).await?)
    }

    fn run_erased<'a>(
        &'a self,
        semaphore: &'a Arc<Semaphore>,
        wait: Duration,
        work: Work,
    ) -> BoxFuture<'a, Result<Erased, DatabaseError>> {
        Box::pin(self.acquire_and_run(semaphore, wait, work))
    }

    async fn acquire_and_run(
        &self,
        semaphore: &Arc<Semaphore>,
        wait: Duration,
        work: Work,
    ) -> Result<Erased, DatabaseError> {
        let semaphore = Arc::clone(semaphore);
        let metrics = self.metrics.clone();
        if let Ok(permit) = Arc::clone(&semaphore).try_acquire_owned() {
            metrics.record_wait(Duration::ZERO);
            return run_blocking(permit, metrics.track_in_use(), work).await;
        }
        let began = Instant::now();
        let waiting = async move {
            let permit = timeout(wait, semaphore.acquire_owned()).await;
            metrics.record_wait(began.elapsed());
            match permit {
                Ok(Ok(permit)) => run_blocking(permit, metrics.track_in_use(), work).await,
                Ok(Err(_)) | Err(_) => {
                    metrics.count_unavailable();
                    Err(DatabaseError::Unavailable(format!("no free connection within {wait:?}")))
                }
            }
        };
        // In its own task: a permit assigned to a future that is not polled would block the callers behind it.
        spawn_and_wait(waiting).await?
    }
}

async fn run_blocking(
    permit: OwnedSemaphorePermit,
    in_use: GaugeGuard,
    work: Work,
) -> Result<Erased, DatabaseError> {
    let result = blocking(move || {
        // Held until the work returns, also when the caller has gone.
        let (_permit, _in_use) = (permit, in_use);
        work()
    });
    Ok(result.await?)
}

#[derive(Debug)]
struct Customizer;

impl CustomizeConnection<SqliteConnection, Error> for Customizer {
    fn on_acquire(&self, connection: &mut SqliteConnection) -> Result<(), Error> {
        // FULL: a commit survives power loss, which a 202 promises.
        connection
            .batch_execute(
                "PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
                 PRAGMA foreign_keys = ON;",
            )
            .map_err(Error::QueryError)
    }
}
