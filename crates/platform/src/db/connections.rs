//! The connections of a pool: who uses them, since when, and how long somebody may wait for one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::r2d2::{ConnectionManager, CustomizeConnection, Error, Pool, PooledConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout_at;

use super::metrics::{InUse, Use};
use super::{CONNECTION_DEADLINE, DatabaseError};

type Manager = ConnectionManager<PgConnection>;

/// For so long after a connection was refused nobody waits long for the next one.
const OUTAGE_MEMORY: Duration = Duration::from_secs(1);

/// How long somebody waits for a connection during an outage. Connecting goes on in the background meanwhile.
const OUTAGE_PATIENCE: Duration = Duration::from_millis(100);

/// How long a statement may take, as PostgreSQL reads it: less than the deadline of the call it is part of, so that a slow
/// one is ended by the server and its connection lives on, and only a server that does not answer looks as if it hung.
/// Work without a deadline sets its own.
pub(super) const STATEMENT_TIMEOUT: &str = "7s";

/// Connections to one server, and the places of those who may use them.
pub(super) struct Connections {
    pool: Pool<Manager>,
    places: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
    used: Use,
}

#[derive(Default)]
struct State {
    /// When each call must have ended, by number; none for calls that take as long as they take.
    calls: BTreeMap<u64, Option<Instant>>,
    next_call: u64,
    /// When a connection could not be had the last time, unless one could be had since.
    refused_at: Option<Instant>,
    /// When a connection was found dead the last time. Its neighbours probably died with it.
    death: Option<Instant>,
}

/// When a connection last answered a test, kept with it.
struct Proven(Instant);

/// The right to use a connection. Given back when dropped.
pub(super) struct Place {
    state: Arc<Mutex<State>>,
    call: u64,
    _used: InUse,
    _permit: OwnedSemaphorePermit,
}

impl Connections {
    /// A pool without any connection: they are made when they are needed.
    pub(super) fn open(url: &str, schema: &'static str, size: u32, used: Use) -> Self {
        let pool = Pool::builder()
            .max_size(size)
            .min_idle(Some(0))
            .connection_timeout(CONNECTION_DEADLINE)
            .idle_timeout(Some(Duration::from_secs(300)))
            .test_on_check_out(false)
            .connection_customizer(Box::new(Customizer { schema }))
            .build_unchecked(Manager::new(url));
        let places = Arc::new(Semaphore::new(usize::try_from(size).unwrap_or(Semaphore::MAX_PERMITS)));
        Self { pool, places, state: Arc::default(), used }
    }

    /// A place, if one is free. The call that takes it is overdue when it has not ended within `limit`.
    pub(super) fn try_place(&self, limit: Option<Duration>) -> Option<Place> {
        let permit = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some(self.place(permit, limit))
    }

    /// The same, as soon as one is free; none when that takes longer than until `by`. Must be polled until it ends, see
    /// [`crate::runtime::driven`].
    pub(super) async fn wait_for_place(&self, by: Instant, limit: Option<Duration>) -> Option<Place> {
        let waiting = timeout_at(by.into(), Arc::clone(&self.places).acquire_owned());
        // The semaphore is never closed.
        Some(self.place(waiting.await.ok()?.ok()?, limit))
    }

    fn place(&self, permit: OwnedSemaphorePermit, limit: Option<Duration>) -> Place {
        let mut state = lock(&self.state);
        let call = state.next_call;
        state.next_call += 1;
        state.calls.insert(call, limit.map(|limit| Instant::now() + limit));
        Place { state: Arc::clone(&self.state), call, _used: self.used.begin(), _permit: permit }
    }

    /// A connection, on a thread that may block; `by` then, or a moment from now during an outage. Once one was found
    /// dead, every other one is tested before it is handed out again, so that a server that was restarted costs one
    /// failure and not one for each connection.
    pub(super) fn connect(&self, by: Instant) -> Result<PooledConnection<Manager>, DatabaseError> {
        loop {
            let mut connection = self.take(by)?;
            if self.is_above_suspicion(&connection) || self.prove(&mut connection) {
                return Ok(connection);
            }
            // Broken now: the pool drops it, so that this ends when no old one is left.
        }
    }

    fn take(&self, by: Instant) -> Result<PooledConnection<Manager>, DatabaseError> {
        let refused_at = lock(&self.state).refused_at;
        let mut patience = by.saturating_duration_since(Instant::now());
        if refused_at.is_some_and(|refused_at| refused_at.elapsed() < OUTAGE_MEMORY) {
            patience = patience.min(OUTAGE_PATIENCE);
        }
        let connected = self.pool.get_timeout(patience.max(Duration::from_millis(1)));
        lock(&self.state).refused_at = connected.is_err().then(Instant::now);
        if connected.is_err() {
            self.used.unavailable();
        }
        connected.map_err(|error| DatabaseError::Unavailable(error.to_string()))
    }

    fn is_above_suspicion(&self, connection: &PooledConnection<Manager>) -> bool {
        let Some(death) = lock(&self.state).death else { return true };
        PooledConnection::extensions(connection).get::<Proven>().is_some_and(|proven| proven.0 > death)
    }

    /// Whether the connection answers; one that does not is not handed out again. Must be asked after work has failed:
    /// diesel does not notice a connection that died before a statement was prepared on it, and the pool hands out
    /// the connection that was given back last, which would be this one again and again. Takes no longer than any
    /// other statement.
    pub(super) fn prove(&self, connection: &mut PooledConnection<Manager>) -> bool {
        // Not by a prepared statement, for the same reason.
        let answer = connection.batch_execute("SELECT 1");
        let now = Instant::now();
        match answer {
            Ok(()) => {
                PooledConnection::extensions_mut(connection).insert(Proven(now));
                true
            }
            Err(error) => {
                tracing::debug!(%error, "a connection to the database does not answer and is given up");
                lock(&self.state).death = Some(now);
                false
            }
        }
    }

    /// Calls that have not ended.
    pub(super) fn calls(&self) -> usize {
        lock(&self.state).calls.len()
    }

    /// Whether a call should have ended before now.
    pub(super) fn has_overdue_calls(&self) -> bool {
        let now = Instant::now();
        lock(&self.state).calls.values().any(|end| end.is_some_and(|end| end <= now))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.state).calls.remove(&self.call);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Nothing panics while the lock is held.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Customizer {
    schema: &'static str,
}

impl CustomizeConnection<PgConnection, Error> for Customizer {
    fn on_acquire(&self, connection: &mut PgConnection) -> Result<(), Error> {
        let statement = format!(
            "SET search_path TO {}; SET statement_timeout = '{STATEMENT_TIMEOUT}'; SET idle_in_transaction_session_timeout = '60s'",
            self.schema
        );
        connection.batch_execute(&statement).map_err(Error::QueryError)
    }
}
