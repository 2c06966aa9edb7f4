//! SQLite: the start in one command. One file a service, write-ahead log, one writer at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use diesel::r2d2::{ConnectionManager, CustomizeConnection, Error, Pool, PooledConnection};
use diesel::sqlite::SqliteConnection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::metrics::{InUse, Use};
use super::{CONNECTION_DEADLINE, DatabaseError, Migrations, migrations};
use crate::runtime::{blocking, driven};

type Manager = ConnectionManager<SqliteConnection>;

/// How long a writer waits for its turn.
const TURN_DEADLINE: Duration = Duration::from_secs(8);

/// How long a migration waits for the end of another one.
const MIGRATION_DEADLINE: Duration = Duration::from_secs(600);

/// A pool of connections to one file. Writers queue up here rather than in SQLite, whose waiting is a lottery. Whoever
/// waits holds no thread, so that no more threads are busy than there are connections.
#[derive(Clone)]
pub struct Sqlite {
    name: &'static str,
    pool: Pool<Manager>,
    readers: Arc<Semaphore>,
    writers: Arc<Semaphore>,
    used: Use,
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
        // One connection is left for the writer where there are several.
        let readers = usize::try_from(size.saturating_sub(1).max(1)).unwrap_or(Semaphore::MAX_PERMITS);
        let (readers, writers) = (Arc::new(Semaphore::new(readers)), Arc::new(Semaphore::new(1)));
        Self { name, pool, readers, writers, used: Use::of(name, size) }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
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
        self.in_turn(&self.readers, CONNECTION_DEADLINE, move || work(&mut *this.connection()?)).await
    }

    /// Does `work` that writes, in one transaction: all of it or, on an error, nothing.
    ///
    /// # Errors
    /// As [`Self::read`]; a writer waits eight seconds for its turn.
    pub async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut SqliteConnection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DatabaseError> + From<diesel::result::Error> + Send + 'static,
    {
        let this = self.clone();
        let work = move || this.connection()?.immediate_transaction(work);
        self.in_turn(&self.writers, TURN_DEADLINE, work).await
    }

    fn connection(&self) -> Result<PooledConnection<Manager>, DatabaseError> {
        self.pool.get().map_err(|error| {
            self.used.unavailable();
            DatabaseError::Unavailable(error.to_string())
        })
    }

    pub(super) async fn ping(&self) -> Result<(), DatabaseError> {
        self.read(|connection| Ok(connection.batch_execute("SELECT 1")?)).await
    }

    pub(super) async fn migrate(&self, sets: &'static [Migrations]) -> Result<Vec<String>, DatabaseError> {
        let this = self.clone();
        let work = move || migrations::apply_sqlite(&mut *this.connection()?, sets);
        self.in_turn(&self.writers, MIGRATION_DEADLINE, work).await
    }

    pub(super) async fn pending_migrations(
        &self,
        sets: &'static [Migrations],
    ) -> Result<Vec<String>, DatabaseError> {
        self.read(move |connection| migrations::pending_sqlite(connection, sets)).await
    }

    /// Does `work` on a thread of its own when it is its turn.
    async fn in_turn<T, E, W>(&self, turns: &Arc<Semaphore>, limit: Duration, work: W) -> Result<T, E>
    where
        W: FnOnce() -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        let turns = Arc::clone(turns);
        let used = self.used.clone();
        if let Ok(turn) = Arc::clone(&turns).try_acquire_owned() {
            used.waited(Duration::ZERO);
            return on_a_thread(turn, used.begin(), work).await;
        }
        let began = Instant::now();
        let waiting = async move {
            let turn = timeout(limit, turns.acquire_owned()).await;
            used.waited(began.elapsed());
            match turn {
                Ok(Ok(turn)) => on_a_thread(turn, used.begin(), work).await,
                Ok(Err(_)) | Err(_) => {
                    used.unavailable();
                    Err(DatabaseError::Unavailable(format!("no turn within {limit:?}")).into())
                }
            }
        };
        driven(waiting).await.map_err(DatabaseError::from)?
    }
}

async fn on_a_thread<T, E, W>(turn: OwnedSemaphorePermit, used: InUse, work: W) -> Result<T, E>
where
    W: FnOnce() -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: From<DatabaseError> + Send + 'static,
{
    let result = blocking(move || {
        // Given back when the work has ended, whether somebody waits for it or not.
        let (_turn, _used) = (turn, used);
        work()
    });
    result.await.map_err(DatabaseError::from)?
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
