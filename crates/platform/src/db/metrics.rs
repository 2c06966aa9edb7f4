//! Metrics of a connection pool. SQLite counts like PostgreSQL: its pool size is the limit, and one connection writes at a time.

use std::sync::Arc;
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

/// Metrics of one pool, or of several that replace each other. Clones share state.
#[derive(Clone)]
pub(super) struct PoolMetrics {
    _limit: Arc<LimitGuard>,
    in_use: Gauge,
    wait: Histogram,
    unavailable: Counter,
}

/// Adds the pool's size to the limit gauge while it lives: a process may have several pools on one database.
struct LimitGuard {
    limits: Gauge,
    connections: f64,
}

impl Drop for LimitGuard {
    fn drop(&mut self) {
        self.limits.decrement(self.connections);
    }
}

/// Counts one connection as in use until dropped.
pub(super) struct InUseGuard(Gauge);

impl PoolMetrics {
    /// Metrics of `database` with at most `limit` connections.
    pub(super) fn new(database: &str, limit: u32) -> Self {
        let database = database.to_owned();
        let limits = gauge!("assay_database_connections_limit", "database" => database.clone());
        let connections = f64::from(limit);
        limits.increment(connections);
        Self {
            _limit: Arc::new(LimitGuard { limits, connections }),
            in_use: gauge!("assay_database_connections_used", "database" => database.clone()),
            wait: histogram!("assay_database_wait_seconds", "database" => database.clone()),
            unavailable: counter!("assay_database_unavailable_total", "database" => database),
        }
    }

    /// Counts one more connection as in use.
    pub(super) fn track_in_use(&self) -> InUseGuard {
        self.in_use.increment(1.0);
        InUseGuard(self.in_use.clone())
    }

    /// Records the wait for a connection.
    pub(super) fn record_wait(&self, wait: Duration) {
        self.wait.record(wait);
    }

    /// Counts work that got no connection, or no result, before its deadline.
    pub(super) fn count_unavailable(&self) {
        self.unavailable.increment(1);
    }
}

impl Drop for InUseGuard {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}
