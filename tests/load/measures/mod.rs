//! What is measured.

mod accepting;
pub mod evaluated;
pub mod exports;
pub mod growth;
pub mod hops;
pub mod imports;
pub mod lists;
pub mod replicas;
pub mod standalone;

use std::time::Duration;

/// How long and how often.
#[derive(Clone, Copy)]
pub struct Pace {
    pub rounds: usize,
    pub time: Duration,
    /// Of what must go on for longer, to show that nothing piles up.
    pub sustained: Duration,
    /// Stored at most while it is measured what that costs.
    pub tickets: u64,
    /// Of an export.
    pub rows: u64,
}

/// What an import may take at half of the load that is possible, in milliseconds.
const HIGHEST_P99_MS: f64 = 15.0;
