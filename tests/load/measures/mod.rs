//! What is measured.

pub mod exports;
pub mod imports;

use std::time::Duration;

/// How long and how often.
#[derive(Clone, Copy)]
pub struct Pace {
    pub rounds: usize,
    pub time: Duration,
}
