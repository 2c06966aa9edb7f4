//! Metrics of a connection pool. SQLite counts like PostgreSQL: its pool size is the limit, and one connection writes at a time.

use std::sync::Arc;
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

/// Metrics of one pool, or of several that replace each other. Clones share state.
#[derive(Clone)]
pub(super) struct PoolMetrics {
    /// A process may have several pools on one database: the limit is their sum.
    _limit: Arc<GaugeGuard>,
    in_use: Gauge,
    wait: Histogram,
    unavailable: Counter,
}

/// Adds an amount to a gauge until dropped.
pub(super) struct GaugeGuard {
    gauge: Gauge,
    amount: f64,
}

impl GaugeGuard {
    fn add(gauge: Gauge, amount: f64) -> Self {
        gauge.increment(amount);
        Self { gauge, amount }
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.gauge.decrement(self.amount);
    }
}

impl PoolMetrics {
    /// Metrics of `database` with at most `limit` connections.
    pub(super) fn new(database: &str, limit: u32) -> Self {
        let database = database.to_owned();
        let limits = gauge!("assay_database_connections_limit", "database" => database.clone());
        Self {
            _limit: Arc::new(GaugeGuard::add(limits, limit.into())),
            in_use: gauge!("assay_database_connections_used", "database" => database.clone()),
            wait: histogram!("assay_database_wait_seconds", "database" => database.clone()),
            unavailable: counter!("assay_database_unavailable_total", "database" => database),
        }
    }

    /// Counts one more connection as in use.
    pub(super) fn track_in_use(&self) -> GaugeGuard {
        GaugeGuard::add(self.in_use.clone(), 1.0)
    }

    pub(super) fn record_wait(&self, wait: Duration) {
        self.wait.record(wait);
    }

    /// Counts work that got no connection, or no result, before its deadline.
    pub(super) fn count_unavailable(&self) {
        self.unavailable.increment(1);
    }
}
