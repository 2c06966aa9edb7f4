//! PostgreSQL: production.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use assay_contracts::time::Timestamp;
use diesel::connection::SimpleConnection;
use diesel::pg::{Pg, PgConnection};
use diesel::sql_types::BigInt;
use diesel::{Connection, RunQueryDsl as _};
use futures_util::future::BoxFuture;

use super::clock::Now;
use super::clock_skew::ClockSkew;
use super::connections::{ConnectionPermit, Connections};
use super::metrics::PoolMetrics;
use super::{CONNECTION_DEADLINE, DatabaseError, Migrations, migrations};
use crate::runtime::{Erased, LockExt as _, blocking, restore, spawn_and_wait, timeout};

/// Deadline of a call. A hung server (frozen, or behind a network that drops packets) keeps the blocking thread, which
/// cannot be interrupted; the caller returns without it.
const CALL_DEADLINE: Duration = Duration::from_secs(8);

/// A connection pool for one schema. Clones share the pool.
///
/// A call acquires a permit before a thread, so an outage blocks at most as many threads as there are connections. When a
/// call hangs, the whole pool is replaced: the server may be frozen for good, and calls to its successor must not wait for
/// it. Abandoned connections close when their calls return. There are never more of them than the pool size, so a process
/// holds at most twice its pool size.
#[derive(Clone)]
pub struct Postgres {
    shared: Arc<Shared>,
}

struct Shared {
    url: String,
    schema: &'static str,
    size: u32,
    metrics: PoolMetrics,
    pools: Mutex<Pools>,
}

struct Pools {
    current: Arc<Connections>,
    /// Replaced pools that still have hung calls.
    abandoned: Vec<Arc<Connections>>,
}

/// Type-erased work on a connection: the code that runs it is compiled once, not for each call.
type Work = Box<dyn FnOnce(&mut PgConnection) -> WorkOutcome + Send>;

struct WorkOutcome {
    has_failed: bool,
    /// A `Result<T, E>` of the caller.
    result: Erased,
}

#[derive(diesel::QueryableByName)]
struct ServerTime {
    #[diesel(sql_type = BigInt)]
    millis: i64,
}

impl Postgres {
    pub(super) fn open(url: &str, schema: &'static str, size: u32) -> Self {
        let url = with_network_timeouts(url);
        let metrics = PoolMetrics::new(schema, size);
        let current = Arc::new(Connections::open(&url, schema, size, metrics.clone()));
        let pools = Mutex::new(Pools { current, abandoned: Vec::new() });
        Self { shared: Arc::new(Shared { url, schema, size, metrics, pools }) }
    }

    pub(super) fn name(&self) -> &'static str {
        self.shared.schema
    }

    /// Compares the server's clock with `now`.
    pub(super) async fn measure_clock(&self, now: Now) -> Result<ClockSkew, DatabaseError> {
        const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS millis";
        let schema = self.name();
        let measure = move |connection: &mut PgConnection| {
            let (began, timer) = (now(), Instant::now());
            let theirs: ServerTime = diesel::sql_query(CLOCK).get_result(connection)?;
            let theirs = Timestamp::saturating_from_millis(theirs.millis);
            Ok(ClockSkew::measured(schema, began, timer.elapsed(), theirs))
        };
        self.run(measure).await
    }

    /// Runs `work` with a connection on a blocking thread. It should take milliseconds: after eight seconds the caller
    /// gets [`DatabaseError::Unavailable`], and the outcome of the work is unknown.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] without a connection within a second or a result within eight, else the error of
    /// `work`.
    pub async fn run<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut PgConnection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        self.run_with_limit(Some(CALL_DEADLINE), work).await
    }

    /// Runs `work` in a transaction, which is rolled back when `work` fails.
    ///
    /// # Errors
    /// As [`Self::run`], and errors of the commit.
    pub async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut PgConnection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DatabaseError> + From<diesel::result::Error> + Send + 'static,
    {
        self.run(move |connection| connection.transaction(work)).await
    }

    /// [`Self::run`] without a deadline for the work: a migration, a file of a million rows.
    ///
    /// # Errors
    /// As [`Self::run`], without the deadline of the result.
    pub async fn run_long<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut PgConnection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        self.run_with_limit(None, work).await
    }

    async fn run_with_limit<T, E, F>(&self, limit: Option<Duration>, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut PgConnection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
    {
        let work = move |connection: &mut PgConnection| {
            let result = work(connection);
            WorkOutcome { has_failed: result.is_err(), result: Box::new(result) }
        };
        restore(self.run_erased(limit, Box::new(work)).await?)
    }

    fn run_erased(
        &self,
        limit: Option<Duration>,
        work: Work,
    ) -> BoxFuture<'_, Result<Erased, DatabaseError>> {
        Box::pin(self.acquire_and_call(limit, work))
    }

    async fn acquire_and_call(&self, limit: Option<Duration>, work: Work) -> Result<Erased, DatabaseError> {
        let connections = self.current();
        let connect_by = Instant::now() + CONNECTION_DEADLINE;
        if let Some(permit) = connections.try_acquire(limit) {
            self.shared.metrics.record_wait(Duration::ZERO);
            return self.call(connections, permit, connect_by, limit, work).await;
        }
        let this = self.clone();
        let began = Instant::now();
        let waiting = async move {
            let permit = connections.acquire(connect_by, limit).await;
            this.shared.metrics.record_wait(began.elapsed());
            let Some(permit) = permit else {
                this.shared.metrics.count_unavailable();
                this.replace_pool_if_hung(&connections);
                let reason = format!("all {} connections are in use", this.shared.size);
                return Err(DatabaseError::Unavailable(reason));
            };
            this.call(connections, permit, connect_by, limit, work).await
        };
        // In its own task: a permit assigned to a future that is not polled would block the callers behind it.
        spawn_and_wait(waiting).await?
    }

    async fn call(
        &self,
        connections: Arc<Connections>,
        permit: ConnectionPermit,
        connect_by: Instant,
        limit: Option<Duration>,
        work: Work,
    ) -> Result<Erased, DatabaseError> {
        let pool = Arc::clone(&connections);
        let call = blocking(move || {
            // Held until the work returns, also when the caller has timed out.
            let _permit = permit;
            let mut connection = pool.connect(connect_by)?;
            let returned = work(&mut connection);
            if returned.has_failed {
                pool.validate(&mut connection);
            }
            Ok(returned.result)
        });
        let Some(limit) = limit else { return call.await? };
        if let Some(result) = timeout(limit, call).await {
            return result?;
        }
        self.shared.metrics.count_unavailable();
        self.replace_pool_if_hung(&connections);
        Err(DatabaseError::Unavailable(format!("no result within {limit:?}")))
    }

    fn current(&self) -> Arc<Connections> {
        self.shared.pools.locked().current.clone()
    }

    /// Replaces the pool when one of its calls is overdue, unless replaced pools would then have more calls than the pool size.
    fn replace_pool_if_hung(&self, hung: &Arc<Connections>) {
        if !hung.has_overdue_calls() {
            return;
        }
        let mut pools = self.shared.pools.locked();
        pools.abandoned.retain(|connections| connections.active_calls() > 0);
        let abandoned_calls: usize =
            pools.abandoned.iter().map(|connections| connections.active_calls()).sum();
        let pool_size = usize::try_from(self.shared.size).unwrap_or(usize::MAX);
        if !Arc::ptr_eq(&pools.current, hung) || abandoned_calls + hung.active_calls() > pool_size {
            return;
        }
        tracing::warn!(
            schema = self.shared.schema,
            calls = hung.active_calls(),
            "the database hangs: the connection pool is replaced"
        );
        let Shared { url, schema, size, metrics, .. } = &*self.shared;
        let fresh = Arc::new(Connections::open(url, schema, *size, metrics.clone()));
        let hung = std::mem::replace(&mut pools.current, fresh);
        pools.abandoned.push(hung);
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
        let schema = self.shared.schema;
        let sources = sets.iter().map(|set| &set.postgres);
        self.run(move |connection| migrations::pending::<Pg, _>(connection, schema, sources)).await
    }
}

/// Adds a connect timeout and TCP keepalives: an unreachable database must not hold a caller longer than the deadline, and
/// a silently lost one is detected after 10 seconds without traffic and dropped within 25. Parameters that the address has
/// are left as they are.
fn with_network_timeouts(url: &str) -> String {
    // libpq takes whole seconds and treats 1 as 2.
    const PARAMETERS: [(&str, &str); 5] = [
        ("connect_timeout", "2"),
        ("keepalives_idle", "10"),
        ("keepalives_interval", "5"),
        ("keepalives_count", "3"),
        ("tcp_user_timeout", "10000"),
    ];
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let present: Vec<&str> = query.split('&').filter_map(|pair| Some(pair.split_once('=')?.0)).collect();
    let mut url = url.to_owned();
    let mut separator = if url.contains('?') { '&' } else { '?' };
    for (name, value) in PARAMETERS.iter().filter(|(name, _)| !present.contains(name)) {
        url.extend([&separator.to_string(), *name, "=", *value]);
        separator = '&';
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_timeouts_are_added_beside_those_of_the_address() {
        let added = "keepalives_idle=10&keepalives_interval=5&keepalives_count=3&tcp_user_timeout=10000";
        assert_eq!(
            with_network_timeouts("postgres://h/d"),
            format!("postgres://h/d?connect_timeout=2&{added}")
        );
        let own = "postgres://u:connect_timeout=@h/d?sslmode=require&connect_timeout=9";
        assert_eq!(with_network_timeouts(own), format!("{own}&{added}"));
    }
}
