//! PostgreSQL: production.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;

use super::connections::{Connections, Place};
use super::metrics::Use;
use super::{CONNECTION_DEADLINE, DatabaseError, Migrations, migrations};
use crate::runtime::{blocking, driven, within};

/// How long a caller waits for the answer to its work. A server that hangs (frozen, or behind a network that swallows
/// packets) keeps the thread, which cannot be interrupted; the caller goes on without it.
const CALL_DEADLINE: Duration = Duration::from_secs(8);

/// A pool of connections that work in one schema. Cloned freely; all clones are one.
///
/// Work takes a place before it takes a thread, so that no outage holds more threads than there are connections. When a
/// call hangs, the whole pool is given up for a new one: the server that does not answer may be frozen for good, and its
/// successor must not wait for it. The connections given up end with their calls; there are never more of them than
/// the pool has places, so that a process holds twice its pool at most.
#[derive(Clone)]
pub struct Postgres {
    shared: Arc<Shared>,
}

struct Shared {
    url: String,
    schema: &'static str,
    size: u32,
    used: Use,
    pools: Mutex<Pools>,
}

struct Pools {
    current: Arc<Connections>,
    /// Given up, and still in the hands of calls that hang.
    given_up: Vec<Arc<Connections>>,
}

impl Postgres {
    pub(super) fn open(url: &str, schema: &'static str, size: u32) -> Self {
        let url = with_timeout(url);
        let used = Use::of(schema, size);
        let current = Arc::new(Connections::open(&url, schema, size, used.clone()));
        let pools = Mutex::new(Pools { current, given_up: Vec::new() });
        Self { shared: Arc::new(Shared { url, schema, size, used, pools }) }
    }

    pub(super) fn name(&self) -> &'static str {
        self.shared.schema
    }

    /// Does `work` with a connection, on a thread of its own. It should take milliseconds: after eight seconds the
    /// caller is told that the database is unavailable, and does not learn what became of the work.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] when there is no connection within a second or no answer within eight, else what
    /// `work` says.
    pub async fn run<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut PgConnection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        self.run_within(Some(CALL_DEADLINE), work).await
    }

    /// [`Self::run`] for work that takes as long as it takes: a migration, a file of a million rows.
    ///
    /// # Errors
    /// As [`Self::run`], but for its deadline.
    pub async fn run_long<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut PgConnection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        self.run_within(None, work).await
    }

    async fn run_within<T, E, F>(&self, limit: Option<Duration>, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut PgConnection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        let connections = self.current();
        let connect_by = Instant::now() + CONNECTION_DEADLINE;
        if let Some(place) = connections.try_place(limit) {
            self.shared.used.waited(Duration::ZERO);
            return self.call(connections, place, connect_by, limit, work).await;
        }
        let this = self.clone();
        let began = Instant::now();
        let waiting = async move {
            let place = connections.wait_for_place(connect_by, limit).await;
            this.shared.used.waited(began.elapsed());
            let Some(place) = place else {
                this.shared.used.unavailable();
                this.give_up_if_hanging(&connections);
                let reason = format!("all {} connections are in use", this.shared.size);
                return Err(DatabaseError::Unavailable(reason).into());
            };
            this.call(connections, place, connect_by, limit, work).await
        };
        driven(waiting).await.map_err(DatabaseError::from)?
    }

    async fn call<T, E, F>(
        &self,
        connections: Arc<Connections>,
        place: Place,
        connect_by: Instant,
        limit: Option<Duration>,
        work: F,
    ) -> Result<T, E>
    where
        F: FnOnce(&mut PgConnection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        let used = Arc::clone(&connections);
        let call = blocking(move || {
            // Given back when the work has ended, whether somebody waits for it or not.
            let _place = place;
            let mut connection = used.connect(connect_by)?;
            let done = work(&mut connection);
            if done.is_err() {
                used.prove(&mut connection);
            }
            done
        });
        let Some(limit) = limit else { return call.await.map_err(DatabaseError::from)? };
        if let Some(done) = within(limit, call).await {
            return done.map_err(DatabaseError::from)?;
        }
        self.shared.used.unavailable();
        self.give_up_if_hanging(&connections);
        Err(DatabaseError::Unavailable(format!("no answer within {limit:?}")).into())
    }

    fn current(&self) -> Arc<Connections> {
        self.pools().current.clone()
    }

    /// Makes a new pool when a call on this one is overdue, as long as the calls that hang are few enough.
    fn give_up_if_hanging(&self, hanging: &Arc<Connections>) {
        if !hanging.has_overdue_calls() {
            return;
        }
        let mut pools = self.pools();
        pools.given_up.retain(|connections| connections.calls() > 0);
        let held: usize = pools.given_up.iter().map(|connections| connections.calls()).sum();
        let room = usize::try_from(self.shared.size).unwrap_or(usize::MAX);
        if !Arc::ptr_eq(&pools.current, hanging) || held + hanging.calls() > room {
            return;
        }
        tracing::warn!(
            schema = self.shared.schema,
            calls = hanging.calls(),
            "the database hangs: connecting anew"
        );
        let Shared { url, schema, size, used, .. } = &*self.shared;
        let fresh = Arc::new(Connections::open(url, schema, *size, used.clone()));
        let given_up = std::mem::replace(&mut pools.current, fresh);
        pools.given_up.push(given_up);
    }

    fn pools(&self) -> std::sync::MutexGuard<'_, Pools> {
        // Nothing panics while the lock is held.
        self.shared.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn ping(&self) -> Result<(), DatabaseError> {
        self.run(|connection| Ok(connection.batch_execute("SELECT 1")?)).await
    }

    pub(super) async fn migrate(&self, sets: &'static [Migrations]) -> Result<Vec<String>, DatabaseError> {
        let schema = self.shared.schema;
        self.run_long(move |connection| migrations::apply_postgres(connection, schema, sets)).await
    }

    pub(super) async fn pending_migrations(
        &self,
        sets: &'static [Migrations],
    ) -> Result<Vec<String>, DatabaseError> {
        self.run(move |connection| migrations::pending_postgres(connection, sets)).await
    }
}

/// A database that does not answer must not hold a caller longer than the deadline, and one that vanished without a
/// word must be noticed: after ten seconds of silence on the network the kernel asks, and gives up within 25.
fn with_timeout(url: &str) -> String {
    if url.contains("connect_timeout=") {
        return url.to_owned();
    }
    let separator = if url.contains('?') { '&' } else { '?' };
    // libpq knows whole seconds and treats 1 as 2.
    format!(
        "{url}{separator}connect_timeout=2&keepalives_idle=10&keepalives_interval=5&keepalives_count=3\
         &tcp_user_timeout=10000"
    )
}
