//! Backlog limits of an outbox: while the bus is down the table grows, and the disk is finite.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::{LockExt as _, now};
use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::Outbox;

/// Interval of polls of the table.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The pause is at least this many times as long as the poll: counting a million rows every second costs too much.
const PAUSE_FACTOR: u32 = 20;

/// The limit divided by this is the share of an organization, so that one with many events leaves room for the others.
const SHARES: u64 = 2;

/// Value of [`Snapshot::oldest`] while no event is pending.
const NO_EVENT: i64 = i64::MAX;

/// Limits of the pending events of an outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BacklogLimits {
    /// Highest age of a pending event.
    pub age: Duration,
    /// Highest number of pending events.
    pub events: u64,
}

/// A limit is reached: writing more events must be refused until the relay has caught up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BacklogFull {
    /// The oldest pending event is too old.
    #[error("an event has been waiting for the bus for {seconds} s: see whether the bus is up")]
    TooOld {
        /// Age of the oldest pending event.
        seconds: u64,
    },
    /// Too many events are pending.
    #[error("{events} events wait for the bus: see whether the bus is up and its consumers keep up")]
    TooMany {
        /// Number of pending events, at least.
        events: u64,
    },
    /// The pending events of one organization reached its share, half of the limit.
    #[error("more than {events} events of the organization wait for the bus: others still have room")]
    TooManyOfOrganization {
        /// Number of pending events of the organization, at least.
        events: u64,
    },
}

/// The backlog of one service's outbox, as of the last poll (every second while polls are quick). All replicas of a
/// service poll the same table, so that the limits hold for all of them together, except for events written between two
/// polls. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct Backlog {
    limits: BacklogLimits,
    snapshot: Arc<Snapshot>,
}

/// The last poll of the table, and the events added since.
struct Snapshot {
    /// Time at which the oldest pending event was written, epoch milliseconds, or [`NO_EVENT`].
    oldest: AtomicI64,
    events: AtomicU64,
    /// Whether the number of events reached its limit and has not fallen below nine tenths of it since.
    is_draining: AtomicBool,
    /// Organizations that reached their share and have not fallen below nine tenths of it since.
    draining_organizations: Mutex<Vec<OrganizationId>>,
}

impl Backlog {
    /// An empty backlog, until the first poll.
    pub fn new(limits: BacklogLimits) -> Self {
        let snapshot = Snapshot {
            oldest: AtomicI64::new(NO_EVENT),
            events: AtomicU64::new(0),
            is_draining: AtomicBool::new(false),
            draining_organizations: Mutex::default(),
        };
        Self { limits, snapshot: Arc::new(snapshot) }
    }

    /// Whether more events may be written. Cheap enough for every request. After the number of events has
    /// reached its limit, there is room again only below nine tenths of it, so that the result does not flip with each event.
    ///
    /// # Errors
    /// [`BacklogFull`] when a limit is reached.
    pub fn check(&self) -> Result<(), BacklogFull> {
        let events = self.snapshot.events.load(Ordering::Relaxed);
        if self.update_is_draining(events) {
            return Err(BacklogFull::TooMany { events });
        }
        match self.oldest_age() {
            Some(age) if age > self.limits.age => Err(BacklogFull::TooOld { seconds: age.as_secs() }),
            _ => Ok(()),
        }
    }

    /// [`Self::check`], and whether this organization may write more events: its share is half of the limit.
    ///
    /// # Errors
    /// [`BacklogFull`] when a limit is reached.
    pub fn check_organization(&self, organization: OrganizationId) -> Result<(), BacklogFull> {
        self.check()?;
        if self.snapshot.draining_organizations.locked().contains(&organization) {
            return Err(BacklogFull::TooManyOfOrganization { events: self.drained_share() });
        }
        Ok(())
    }

    /// Updates and returns [`Snapshot::is_draining`].
    fn update_is_draining(&self, events: u64) -> bool {
        let limit = self.limits.events;
        let is_draining = &self.snapshot.is_draining;
        if events >= limit {
            is_draining.store(true, Ordering::Relaxed);
        } else if is_draining.load(Ordering::Relaxed) && events < nine_tenths(limit) {
            is_draining.store(false, Ordering::Relaxed);
        }
        is_draining.load(Ordering::Relaxed)
    }

    /// Adds events that were just committed, until the next poll counts them.
    pub fn add(&self, events: u64) {
        self.snapshot.events.fetch_add(events, Ordering::Relaxed);
    }

    /// Polls the table until `stop`. While it cannot be read the last snapshot stays valid. A task of `Phase::Background`.
    pub fn watch(self, outbox: Outbox, stop: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(self.poll_until(outbox, stop))
    }

    async fn poll_until(self, outbox: Outbox, stop: CancellationToken) {
        let mut was_full = false;
        loop {
            let started = Instant::now();
            let Some(polled) = stop.run_until_cancelled(self.poll(&outbox)).await else { return };
            if let Err(error) = polled {
                tracing::debug!(%error, "outbox cannot be read");
            }
            was_full = self.log_transition(was_full);
            let pause = POLL_INTERVAL.max(started.elapsed() * PAUSE_FACTOR);
            if stop.run_until_cancelled(sleep(pause)).await.is_none() {
                return;
            }
        }
    }

    async fn poll(&self, outbox: &Outbox) -> Result<(), DatabaseError> {
        let (oldest, events) = outbox.backlog(self.limits.events).await?;
        self.record(oldest, events);
        let drained_share = self.drained_share();
        let large = if events >= drained_share {
            outbox.organizations_with_backlog(drained_share).await?
        } else {
            Vec::new()
        };
        self.record_organizations(&large);
        Ok(())
    }

    /// Nine tenths of the share: below this an organization that reached its share has room again.
    fn drained_share(&self) -> u64 {
        nine_tenths(self.limits.events / SHARES).max(1)
    }

    /// `large`: the organizations with at least [`Self::drained_share`] pending events, and how many each of them has.
    fn record_organizations(&self, large: &[(OrganizationId, u64)]) {
        let share = (self.limits.events / SHARES).max(1);
        let mut draining = self.snapshot.draining_organizations.locked();
        let is_draining = |(organization, events): &&(OrganizationId, u64)| {
            *events >= share || draining.contains(organization)
        };
        let now_draining: Vec<_> =
            large.iter().filter(is_draining).map(|(organization, _)| *organization).collect();
        for organization_id in now_draining.iter().filter(|organization| !draining.contains(organization)) {
            tracing::warn!(%organization_id, "half of the outbox is of one organization: nothing more of it is accepted");
        }
        *draining = now_draining;
    }

    fn record(&self, oldest: Option<Timestamp>, events: u64) {
        self.snapshot.oldest.store(oldest.map_or(NO_EVENT, Timestamp::as_millis), Ordering::Relaxed);
        self.snapshot.events.store(events, Ordering::Relaxed);
    }

    fn oldest_age(&self) -> Option<Duration> {
        let oldest = self.snapshot.oldest.load(Ordering::Relaxed);
        (oldest != NO_EVENT).then(|| {
            let age = now().millis_since(Timestamp::saturating_from_millis(oldest));
            Duration::from_millis(u64::try_from(age).unwrap_or_default())
        })
    }

    /// Logs when the backlog becomes full and when it no longer is. Returns whether it is full.
    fn log_transition(&self, was_full: bool) -> bool {
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

fn nine_tenths(events: u64) -> u64 {
    events - events / 10
}

#[cfg(test)]
mod tests {
    use assay_platform::runtime::new_id;

    use super::*;

    fn backlog() -> Backlog {
        Backlog::new(BacklogLimits { age: Duration::from_secs(60), events: 100 })
    }

    #[test]
    fn backlog_is_full_at_either_limit_until_drained() {
        let backlog = backlog();
        assert_eq!(backlog.check(), Ok(()), "no poll yet");
        backlog.record(Some(now().plus_millis(-59_000)), 99);
        assert_eq!(backlog.check(), Ok(()));
        backlog.record(Some(now()), 100);
        assert_eq!(backlog.check(), Err(BacklogFull::TooMany { events: 100 }));
        backlog.record(Some(now().plus_millis(-61_500)), 1);
        assert_eq!(backlog.check(), Err(BacklogFull::TooOld { seconds: 61 }));
        backlog.record(None, 0);
        assert_eq!(backlog.check(), Ok(()));
    }

    #[test]
    fn full_backlog_has_room_again_below_nine_tenths() {
        let backlog = backlog();
        let few = [0, 89, 90, 99].map(|events| (events, true));
        let full = [100, 99, 90].map(|events| (events, false));
        let drained = [89, 99].map(|events| (events, true));
        for (events, has_room) in [&few[..], &full, &drained].concat() {
            backlog.record(Some(now()), events);
            assert_eq!(backlog.check().is_ok(), has_room, "{events}");
        }
    }

    #[test]
    fn organization_has_room_up_to_half_and_again_below_nine_tenths_of_it() {
        let (backlog, large, other) = (backlog(), new_id(), new_id());
        let full = Err(BacklogFull::TooManyOfOrganization { events: 45 });
        for (events, expected) in [(49, Ok(())), (50, full), (45, full), (44, Ok(())), (49, Ok(()))] {
            backlog.record(Some(now()), events);
            let counted = [(large, events)];
            backlog.record_organizations(if events >= backlog.drained_share() { &counted } else { &[] });
            assert_eq!(backlog.check_organization(large), expected, "{events}");
            assert_eq!(backlog.check_organization(other), Ok(()));
        }
        backlog.record(Some(now()), 100);
        assert_eq!(backlog.check_organization(other), Err(BacklogFull::TooMany { events: 100 }));
    }

    #[test]
    fn events_added_since_the_last_poll_count() {
        let backlog = backlog();
        backlog.record(Some(now()), 90);
        backlog.add(10);
        assert_eq!(backlog.check(), Err(BacklogFull::TooMany { events: 100 }));
    }

    #[test]
    fn event_from_a_clock_running_ahead_is_not_old() {
        let backlog = backlog();
        backlog.record(Some(now().plus_millis(3_600_000)), 1);
        assert_eq!(backlog.check(), Ok(()));
    }
}
