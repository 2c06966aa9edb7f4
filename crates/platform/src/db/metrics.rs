//! What is counted of the use of a database. A service's file of SQLite has as many connections as its pool, of which one
//! writes at a time.

use std::sync::Arc;
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

/// The connections of one pool, or of several that follow each other. Cloned freely.
#[derive(Clone)]
pub(super) struct Use {
    _limit: Arc<Limit>,
    used: Gauge,
    wait: Histogram,
    unavailable: Counter,
}

/// What a pool adds to the connections that there may be: a process may have several pools on one database.
struct Limit {
    limits: Gauge,
    connections: f64,
}

impl Drop for Limit {
    fn drop(&mut self) {
        self.limits.decrement(self.connections);
    }
}

/// A connection that is used, for as long as it lives.
pub(super) struct InUse(Gauge);

impl Use {
    /// Of `database`, with `limit` connections at most.
    pub(super) fn of(database: &str, limit: u32) -> Self {
        let database = database.to_owned();
        let limits = gauge!("assay_database_connections_limit", "database" => database.clone());
        let connections = f64::from(limit);
        limits.increment(connections);
        Self {
            _limit: Arc::new(Limit { limits, connections }),
            used: gauge!("assay_database_connections_used", "database" => database.clone()),
            wait: histogram!("assay_database_wait_seconds", "database" => database.clone()),
            unavailable: counter!("assay_database_unavailable_total", "database" => database),
        }
    }

    /// One more is in use.
    pub(super) fn begin(&self) -> InUse {
        self.used.increment(1.0);
        InUse(self.used.clone())
    }

    /// Work has waited for a connection.
    pub(super) fn waited(&self, wait: Duration) {
        self.wait.record(wait);
    }

    /// Work got no connection in time, or no answer.
    pub(super) fn unavailable(&self) {
        self.unavailable.increment(1);
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}
