//! When the relay looks at the table.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::backoff::Backoff;

/// How often the table is looked at although nobody said that there is something new.
const POLL: Duration = Duration::from_secs(1);
/// How often rows are looked for that a stepping clock has put off.
const CLOCK_CHECK: Duration = Duration::from_secs(30);
/// While the bus or the database is down.
const OUTAGE: Backoff = Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(5) };

/// The relay's clock: at once when woken, every second otherwise, ever more slowly in an outage.
pub(super) struct Pace {
    due: Instant,
    failures: u32,
    clock_check: Instant,
}

impl Default for Pace {
    fn default() -> Self {
        let now = Instant::now();
        Self { due: now, failures: 0, clock_check: now }
    }
}

impl Pace {
    pub(super) fn is_due(&self) -> bool {
        self.due <= Instant::now()
    }

    pub(super) async fn due(&self) {
        sleep_until(self.due).await;
    }

    pub(super) fn in_outage(&self) -> bool {
        self.failures > 0
    }

    /// Everything due has been claimed.
    pub(super) fn rest(&mut self) {
        self.due = Instant::now() + POLL;
    }

    pub(super) fn wake(&mut self) {
        self.due = Instant::now();
    }

    pub(super) fn failed(&mut self, reason: &str) {
        self.failures = self.failures.saturating_add(1);
        if self.failures == 1 {
            tracing::warn!(reason, "events cannot be published: they wait in the outbox");
        }
        self.due = Instant::now() + OUTAGE.delay(self.failures);
    }

    pub(super) fn succeeded(&mut self) {
        if self.failures > 0 {
            tracing::info!(failures = self.failures, "events are published again");
            self.failures = 0;
            self.wake();
        }
    }

    /// Whether it is time for the check; if so, the next one is due later.
    pub(super) fn clock_check_is_due(&mut self) -> bool {
        let due = self.clock_check <= Instant::now();
        if due {
            self.clock_check = Instant::now() + CLOCK_CHECK;
        }
        due
    }
}
