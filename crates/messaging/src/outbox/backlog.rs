//! How much waits in an outbox, and whether that is too much: with the bus away the table grows, and the disk ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use assay_contracts::time::Timestamp;
use assay_platform::runtime::{BoxError, now};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::Outbox;

/// How often the table is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// Looking takes a twentieth of the time at most: counting a million rows is not for every second.
const SHARE: u32 = 20;

/// In the place of a moment: nothing waits.
const NOTHING: i64 = i64::MAX;

/// What may wait in an outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BacklogLimits {
    /// No event for longer than this.
    pub age: Duration,
    /// Not more events than this.
    pub events: u64,
}

/// Too much waits: what would add to it must be refused until the relay has caught up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BacklogFull {
    /// An event waits for too long.
    #[error("an event has been waiting for the bus for {seconds} s: see whether the bus is up")]
    TooOld {
        /// For how long.
        seconds: u64,
    },
    /// Too many events wait.
    #[error("{events} events wait for the bus: see whether the bus is up and its consumers keep up")]
    TooMany {
        /// How many, at least.
        events: u64,
    },
}

/// What waits in the outbox of one service, as of about a second ago. All replicas of a service look at the same table, so
/// that its limits hold for all of them together, give or take what they write between two looks. Cloned freely; all
/// clones are one.
#[derive(Clone)]
pub struct Backlog {
    limits: BacklogLimits,
    seen: Arc<Seen>,
}

struct Seen {
    /// When the oldest event was written, epoch milliseconds, or [`NOTHING`].
    oldest: AtomicI64,
    events: AtomicU64,
    /// Too many events were seen, and not yet few enough again.
    is_draining: AtomicBool,
}

impl Backlog {
    /// Nothing has been seen yet.
    pub fn new(limits: BacklogLimits) -> Self {
        let seen = Seen {
            oldest: AtomicI64::new(NOTHING),
            events: AtomicU64::new(0),
            is_draining: AtomicBool::new(false),
        };
        Self { limits, seen: Arc::new(seen) }
    }

    /// Whether more may be written. Costs three reads of memory, for every request. Once there were too many events there
    /// is room again below nine tenths of the limit: not for one request each time the relay has published one event.
    ///
    /// # Errors
    /// [`BacklogFull`] when a limit is reached.
    pub fn check(&self) -> Result<(), BacklogFull> {
        let events = self.seen.events.load(Ordering::Relaxed);
        if self.is_too_many(events) {
            return Err(BacklogFull::TooMany { events });
        }
        match self.oldest_age() {
            Some(age) if age > self.limits.age => Err(BacklogFull::TooOld { seconds: age.as_secs() }),
            _ => Ok(()),
        }
    }

    fn is_too_many(&self, events: u64) -> bool {
        let limit = self.limits.events;
        let is_draining = &self.seen.is_draining;
        if events >= limit {
            is_draining.store(true, Ordering::Relaxed);
        } else if is_draining.load(Ordering::Relaxed) && events < limit - limit / 10 {
            is_draining.store(false, Ordering::Relaxed);
        }
        is_draining.load(Ordering::Relaxed)
    }

    /// Counts events that were just committed, until the next look at the table counts them, too.
    pub fn add(&self, events: u64) {
        self.seen.events.fetch_add(events, Ordering::Relaxed);
    }

    /// Looks at the table again and again until `stop`. A table that cannot be read is as it was seen last. A task of
    /// `Phase::Relay`.
    ///
    /// # Errors
    /// None at present: every failure is waited out.
    pub async fn watch(self, outbox: Outbox, stop: CancellationToken) -> Result<(), BoxError> {
        let mut was_full = false;
        loop {
            let began = Instant::now();
            let Some(looked) = stop.run_until_cancelled(outbox.backlog(self.limits.events)).await else {
                return Ok(());
            };
            match looked {
                Ok((oldest, events)) => self.note(oldest, events),
                Err(error) => tracing::debug!(%error, "outbox cannot be looked at"),
            }
            was_full = self.tell(was_full);
            let pause = INTERVAL.max(began.elapsed() * SHARE);
            if stop.run_until_cancelled(sleep(pause)).await.is_none() {
                return Ok(());
            }
        }
    }

    fn note(&self, oldest: Option<Timestamp>, events: u64) {
        self.seen.oldest.store(oldest.map_or(NOTHING, Timestamp::as_millis), Ordering::Relaxed);
        self.seen.events.store(events, Ordering::Relaxed);
    }

    fn oldest_age(&self) -> Option<Duration> {
        let oldest = self.seen.oldest.load(Ordering::Relaxed);
        (oldest != NOTHING).then(|| {
            let age = now().millis_since(Timestamp::saturating_from_millis(oldest));
            Duration::from_millis(u64::try_from(age).unwrap_or_default())
        })
    }

    /// Once when it becomes full and once when it no longer is. Answers which it is.
    fn tell(&self, was_full: bool) -> bool {
        let checked = self.check();
        match checked {
            Err(reason) if !was_full => {
                tracing::error!(%reason, "the outbox is full: nothing more is accepted")
            }
            Ok(()) if was_full => tracing::info!("the outbox has room again"),
            _ => {}
        }
        checked.is_err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backlog() -> Backlog {
        Backlog::new(BacklogLimits { age: Duration::from_secs(60), events: 100 })
    }

    #[test]
    fn an_outbox_is_full_at_its_age_or_at_its_number_and_has_room_when_it_was_drained() {
        let backlog = backlog();
        assert_eq!(backlog.check(), Ok(()), "nothing was seen yet");
        backlog.note(Some(now().plus_millis(-59_000)), 99);
        assert_eq!(backlog.check(), Ok(()));
        backlog.note(Some(now()), 100);
        assert_eq!(backlog.check(), Err(BacklogFull::TooMany { events: 100 }));
        backlog.note(Some(now().plus_millis(-61_500)), 1);
        assert_eq!(backlog.check(), Err(BacklogFull::TooOld { seconds: 61 }));
        backlog.note(None, 0);
        assert_eq!(backlog.check(), Ok(()));
    }

    #[test]
    fn an_outbox_that_was_full_has_room_again_below_nine_tenths() {
        let backlog = backlog();
        let few = [0, 89, 90, 99].map(|events| (events, true));
        let full = [100, 99, 90].map(|events| (events, false));
        let drained = [89, 99].map(|events| (events, true));
        for (events, has_room) in [&few[..], &full, &drained].concat() {
            backlog.note(Some(now()), events);
            assert_eq!(backlog.check().is_ok(), has_room, "{events}");
        }
    }

    #[test]
    fn what_was_written_since_the_last_look_counts() {
        let backlog = backlog();
        backlog.note(Some(now()), 90);
        backlog.add(10);
        assert_eq!(backlog.check(), Err(BacklogFull::TooMany { events: 100 }));
    }

    #[test]
    fn an_event_of_a_clock_that_runs_ahead_is_not_old() {
        let backlog = backlog();
        backlog.note(Some(now().plus_millis(3_600_000)), 1);
        assert_eq!(backlog.check(), Ok(()));
    }
}
