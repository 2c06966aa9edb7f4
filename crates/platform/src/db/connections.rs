//! A connection pool: permits to use a connection, validation of idle connections, and detection of hung calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::r2d2::{ConnectionManager, CustomizeConnection, Error, Pool, PooledConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout_at;

use super::connection_log::ConnectionLog;
use super::metrics::{GaugeGuard, PoolMetrics};
use super::{CONNECTION_DEADLINE, DatabaseError};
use crate::runtime::LockExt as _;

type Manager = ConnectionManager<PgConnection>;

/// For this long after a failed connection attempt, callers wait only [`OUTAGE_CONNECT_TIMEOUT`].
const OUTAGE_WINDOW: Duration = Duration::from_secs(1);

/// Wait for a connection during an outage. The pool keeps connecting in the background.
const OUTAGE_CONNECT_TIMEOUT: Duration = Duration::from_millis(100);

/// `statement_timeout` of PostgreSQL. It is shorter than the deadline of a call: the server cancels a slow statement and the
/// connection stays usable, and only a server that does not respond counts as hung. Work without a deadline sets another one.
pub(super) const STATEMENT_TIMEOUT: &str = "7s";

/// Connections to one server, and the permits to use them.
pub(super) struct Connections {
    pool: Pool<Manager>,
    permits: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
    metrics: PoolMetrics,
    log: ConnectionLog,
}

#[derive(Default)]
struct State {
    /// Calls in flight, by number, with their deadlines; `None` for calls without a deadline.
    calls: BTreeMap<u64, Option<Instant>>,
    next_call: u64,
    /// Last failed connection attempt; cleared by the next success.
    connect_failed_at: Option<Instant>,
    /// Last failed validation. Connections validated before it are suspect: a server restart breaks all of them at once.
    validation_failed_at: Option<Instant>,
}

/// Time of the last successful validation, stored with the connection.
struct LastValidated(Instant);

/// Permit to use one connection. Released on drop.
pub(super) struct ConnectionPermit {
    state: Arc<Mutex<State>>,
    call: u64,
    _in_use: GaugeGuard,
    _permit: OwnedSemaphorePermit,
}

impl Connections {
    /// An empty pool; connections are opened on demand.
    pub(super) fn open(url: &str, schema: &'static str, size: u32, metrics: PoolMetrics) -> Self {
        let log = ConnectionLog::new(url, schema);
        let pool = Pool::builder()
            .max_size(size)
            .min_idle(Some(0))
            .connection_timeout(CONNECTION_DEADLINE)
            .idle_timeout(Some(Duration::from_secs(300)))
            .test_on_check_out(false)
            .connection_customizer(Box::new(Customizer { schema }))
            .error_handler(Box::new(log.clone()))
            .event_handler(Box::new(log.clone()))
            .build_unchecked(Manager::new(url));
        let permits = Arc::new(Semaphore::new(usize::try_from(size).unwrap_or(Semaphore::MAX_PERMITS)));
        Self { pool, permits, state: Arc::default(), metrics, log }
    }

    /// A permit, if one is free. The call that holds it is overdue after `limit`.
    pub(super) fn try_acquire(&self, limit: Option<Duration>) -> Option<ConnectionPermit> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        Some(self.register_call(permit, limit))
    }

    /// Waits for a permit until `by`. The future must be polled to completion, see [`crate::runtime::spawn_and_wait`].
    pub(super) async fn acquire(&self, by: Instant, limit: Option<Duration>) -> Option<ConnectionPermit> {
        let waiting = timeout_at(by.into(), Arc::clone(&self.permits).acquire_owned());
        // The semaphore is never closed.
        Some(self.register_call(waiting.await.ok()?.ok()?, limit))
    }

    fn register_call(&self, permit: OwnedSemaphorePermit, limit: Option<Duration>) -> ConnectionPermit {
        let mut state = self.state.locked();
        let call = state.next_call;
        state.next_call += 1;
        state.calls.insert(call, limit.map(|limit| Instant::now() + limit));
        let in_use = self.metrics.track_in_use();
        ConnectionPermit { state: Arc::clone(&self.state), call, _in_use: in_use, _permit: permit }
    }

    /// Checks out a connection; blocks until `by`, or for [`OUTAGE_CONNECT_TIMEOUT`] during an outage. After one failed
    /// validation all older connections are validated before reuse, so a restarted server costs one failure instead of
    /// one per connection.
    pub(super) fn connect(&self, by: Instant) -> Result<PooledConnection<Manager>, DatabaseError> {
        loop {
            let mut connection = self.check_out(by)?;
            if !self.needs_validation(&connection) || self.validate(&mut connection) {
                return Ok(connection);
            }
            // The pool drops the broken connection. It hands out another one, or opens a new one when none is left.
        }
    }

    fn check_out(&self, by: Instant) -> Result<PooledConnection<Manager>, DatabaseError> {
        let failed_at = self.state.locked().connect_failed_at;
        let mut timeout = by.saturating_duration_since(Instant::now());
        if failed_at.is_some_and(|failed_at| failed_at.elapsed() < OUTAGE_WINDOW) {
            timeout = timeout.min(OUTAGE_CONNECT_TIMEOUT);
        }
        let connected = self.pool.get_timeout(timeout.max(Duration::from_millis(1)));
        // A call that had no time left says nothing about the server.
        if connected.is_ok() || timeout >= OUTAGE_CONNECT_TIMEOUT {
            self.state.locked().connect_failed_at = connected.is_err().then(Instant::now);
        }
        if connected.is_err() {
            self.metrics.count_unavailable();
        }
        connected.map_err(|error| DatabaseError::Unavailable(self.log.text(&error)))
    }

    fn needs_validation(&self, connection: &PooledConnection<Manager>) -> bool {
        let Some(failed_at) = self.state.locked().validation_failed_at else { return false };
        let validated = PooledConnection::extensions(connection).get::<LastValidated>();
        validated.is_none_or(|validated| validated.0 <= failed_at)
    }

    /// Runs `SELECT 1`; a connection that fails it is dropped by the pool. Required after failed work: diesel does not
    /// detect a connection that broke before a statement was prepared on it, and the pool is last-in first-out, so it
    /// would hand out the same broken connection again. The server bounds it by the statement timeout; without an answer the
    /// call becomes overdue.
    pub(super) fn validate(&self, connection: &mut PooledConnection<Manager>) -> bool {
        // Not a prepared statement, for the same reason.
        let result = connection.batch_execute("SELECT 1");
        let now = Instant::now();
        match result {
            Ok(()) => {
                PooledConnection::extensions_mut(connection).insert(LastValidated(now));
                true
            }
            Err(error) => {
                tracing::debug!(%error, "database connection failed validation and is dropped");
                self.state.locked().validation_failed_at = Some(now);
                false
            }
        }
    }

    pub(super) fn active_calls(&self) -> usize {
        self.state.locked().calls.len()
    }

    pub(super) fn has_overdue_calls(&self) -> bool {
        let now = Instant::now();
        self.state.locked().calls.values().any(|deadline| deadline.is_some_and(|deadline| deadline <= now))
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.state.locked().calls.remove(&self.call);
    }
}

#[derive(Debug)]
struct Customizer {
    schema: &'static str,
}

impl CustomizeConnection<PgConnection, Error> for Customizer {
    fn on_acquire(&self, connection: &mut PgConnection) -> Result<(), Error> {
        // A 202 promises that the import survives a crash of the server, whatever the server's default for commits is.
        let statement = format!(
            "SET search_path TO {}; SET synchronous_commit = on; SET statement_timeout = '{STATEMENT_TIMEOUT}'; \
             SET idle_in_transaction_session_timeout = '60s'",
            self.schema
        );
        connection.batch_execute(&statement).map_err(Error::QueryError)
    }
}
