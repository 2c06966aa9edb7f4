//! When the relay polls the table.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::{Instant, sleep_until};

use crate::backoff::backoff;

/// Interval of polls without a wake-up.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of clock skew repairs.
const CLOCK_REPAIR_INTERVAL: Duration = Duration::from_secs(30);
/// Delays of polls while the bus or the database is down.
const OUTAGE_BACKOFF: ExponentialBuilder = backoff(Duration::from_millis(250), Duration::from_secs(5));

/// Polls at once when woken, every second otherwise, and with back-off in an outage.
pub(super) struct PollSchedule {
    due_at: Instant,
    failures: u32,
    delays: ExponentialBackoff,
    clock_repair_at: Instant,
}

impl Default for PollSchedule {
    fn default() -> Self {
        let now = Instant::now();
        Self { due_at: now, failures: 0, delays: OUTAGE_BACKOFF.build(), clock_repair_at: now }
    }
}

impl PollSchedule {
    pub(super) fn is_due(&self) -> bool {
        self.due_at <= Instant::now()
    }

    pub(super) async fn wait_until_due(&self) {
        sleep_until(self.due_at).await;
    }

    pub(super) fn in_outage(&self) -> bool {
        self.failures > 0
    }

    /// When all due rows are claimed.
    pub(super) fn schedule_regular_poll(&mut self) {
        self.due_at = Instant::now() + POLL_INTERVAL;
    }

    pub(super) fn poll_at_once(&mut self) {
        self.due_at = Instant::now();
    }

    pub(super) fn record_failure(&mut self, reason: &str) {
        self.failures = self.failures.saturating_add(1);
        if self.failures == 1 {
            tracing::warn!(reason, "events cannot be published: they wait in the outbox");
        }
        self.due_at = Instant::now() + self.delays.next().unwrap_or(POLL_INTERVAL);
    }

    pub(super) fn record_success(&mut self) {
        if self.failures > 0 {
            tracing::info!(failures = self.failures, "events are published again");
            self.failures = 0;
            self.delays = OUTAGE_BACKOFF.build();
            self.poll_at_once();
        }
    }

    /// Whether the repair of clock skew is due; if so, schedules the next one.
    pub(super) fn take_clock_repair(&mut self) -> bool {
        let is_due = self.clock_repair_at <= Instant::now();
        if is_due {
            self.clock_repair_at = Instant::now() + CLOCK_REPAIR_INTERVAL;
        }
        is_due
    }
}
