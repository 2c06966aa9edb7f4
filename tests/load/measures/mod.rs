//! The measurements.

mod accepting;
pub mod console;
pub mod evaluated;
pub mod exports;
pub mod growth;
pub mod hops;
pub mod imports;
pub mod lists;
pub mod replicas;
pub mod standalone;

use std::sync::Arc;
use std::time::Duration;

use crate::cluster::Servers;
use crate::conversations::Conversations;

/// What every measurement works with.
#[derive(Clone, Copy)]
pub struct Bench<'b> {
    pub servers: &'b Servers,
    pub conversations: &'b Arc<Conversations>,
    pub pace: Pace,
}

/// Duration and rounds of the measurements.
#[derive(Clone, Copy)]
pub struct Pace {
    pub rounds: usize,
    pub time: Duration,
    /// Duration of sustained loads, which show that no backlog grows.
    pub sustained: Duration,
    /// Upper limit of stored tickets for `growth`.
    pub tickets: u64,
    /// Rows of an export.
    pub rows: u64,
}

/// Goal for the p99 of imports at half of the maximum rate, in milliseconds.
const MAX_P99_MS: f64 = 15.0;
