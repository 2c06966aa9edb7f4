//! Handles parked events.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use assay_platform::runtime::{LockExt as _, now, timeout};
use assay_platform::telemetry::metrics as telemetry;
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures_util::future::join_all;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::Parking;
use super::lane::WORKERS;
use super::rows::{Key, ParkedEvent, Settled};
use crate::backoff::backoff;
use crate::bus::{Bus, Delivery, Handler, Outcome, cut_short};
use crate::envelope::OutgoingEvent;
use crate::lease::under_lease;
use crate::metrics;
use crate::outbox::Outbox;

/// Interval of polls without a wake-up: other processes park events, too.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Shortest interval of polls of the priority lane, which is not woken when events are parked. It doubles up to [`POLL_INTERVAL`]
/// while nothing is found: a search counts the events of many organizations.
const MIN_PRIORITY_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long the priority lane of this process leaves the events of an organization to the other lane after all of a chunk failed, or
/// its results could not be recorded.
const EXCLUSION_TIME: Duration = Duration::from_secs(5);
/// Pauses of a worker while the database or a service that the handler needs is down.
const OUTAGE_BACKOFF: ExponentialBuilder = backoff(Duration::from_millis(500), Duration::from_secs(5));
/// After this many consecutive failures of a worker (within about five minutes), a chunk that fails as a whole is
/// returned to the bus, which counts attempts: its events may be the cause after all. Failures of the database count, too.
pub(super) const MAX_FAILURES: u32 = 60;
/// Maximum number of pages of organizations that a worker searches for unclaimed events before it waits.
const MAX_PAGES: usize = 32;
/// Minimum pause between two updates of the gauge.
const GAUGE_INTERVAL: Duration = Duration::from_secs(10);
/// The pause is also at least this many times as long as counting took: counting must not load the database.
const GAUGE_PAUSE_FACTOR: u32 = 20;
/// The gauge shows at most this number: counting ends there.
const MAX_COUNTED: usize = 1_000_000;

/// What handles parked events.
pub struct ParkedWork {
    /// The queue name of parked events in metrics and in [`Bus::check_handling`].
    pub queue: &'static str,
    /// Handles them.
    pub handler: Arc<dyn Handler>,
    /// Handles those of organizations with a small backlog, at the priority of requests.
    pub priority_handler: Arc<dyn Handler>,
    /// Returns failed events to the bus. In the database of the parked events; not the outbox that published them, which may
    /// still hold them.
    pub outbox: Outbox,
    /// The bus that they came from.
    pub bus: Bus,
}

/// What a worker handles.
#[derive(Clone, Copy)]
pub(super) enum WorkerKind {
    /// Events of all organizations, in turns.
    Turns,
    /// Events of organizations with a small backlog.
    Priority,
}

/// What becomes of the events of a chunk when all of them fail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WhenAllFail {
    /// The cause is taken for an outage.
    StayParked,
    ReturnToBus,
}

/// The pauses of a worker in an outage.
struct Pauses {
    failures: u32,
    delays: ExponentialBackoff,
}

impl Parking {
    /// Handles parked events until `stop`, then finishes those in flight. A task of `Phase::Consume`.
    pub async fn work(self, work: ParkedWork, stop: CancellationToken) {
        metrics::register_queue(work.queue);
        let workers = |kind| join_all((0..WORKERS).map(|_| self.run_worker(kind, &work, &stop)));
        tokio::join!(
            workers(WorkerKind::Turns),
            workers(WorkerKind::Priority),
            self.update_gauge(stop.clone())
        );
    }

    async fn run_worker(&self, kind: WorkerKind, work: &ParkedWork, stop: &CancellationToken) {
        let mut pauses = Pauses::default();
        let (lane, shortest_interval) = match kind {
            WorkerKind::Turns => (&self.shared.turns, POLL_INTERVAL),
            WorkerKind::Priority => (&self.shared.priority, MIN_PRIORITY_POLL_INTERVAL),
        };
        let mut interval = shortest_interval;
        while !stop.is_cancelled() {
            let handled = match kind {
                WorkerKind::Turns => self.handle_chunk(work, pauses.failures, stop).await,
                WorkerKind::Priority => self.handle_priority_chunk(work, stop).await,
            };
            match handled {
                Ok(true) => {
                    pauses.end();
                    interval = shortest_interval;
                }
                // Nothing to do, or enough in flight.
                Ok(false) => {
                    let has_searched = self.shared.may_hold_unclaimed.load(Ordering::Relaxed);
                    stop.run_until_cancelled(timeout(interval, lane.wakeup.notified())).await;
                    interval = if has_searched { POLL_INTERVAL.min(2 * interval) } else { shortest_interval };
                }
                // The end of the process may be the cause: the events are handled after the next start.
                Err(_) if stop.is_cancelled() => {}
                Err(reason) => {
                    let delay = pauses.next(&reason);
                    // The organizations of the chunk are left to the other lane: other organizations need not wait as long.
                    let delay = if matches!(kind, WorkerKind::Priority) { POLL_INTERVAL } else { delay };
                    stop.run_until_cancelled(sleep(delay)).await;
                }
            }
        }
    }

    /// Claims a chunk and handles it; returns whether there was one. `failures`: consecutive failures of the worker before.
    pub(super) async fn handle_chunk(
        &self,
        work: &ParkedWork,
        failures: u32,
        stop: &CancellationToken,
    ) -> Result<bool, String> {
        let lane = &self.shared.turns;
        let chunk = lane.chunk_size.get();
        let (mut first_listed, mut after) = (None, *lane.last_turn.locked());
        for _ in 0..MAX_PAGES {
            let organizations = self.organizations(after, chunk).await.map_err(|error| error.to_string())?;
            let Some(last_listed) = organizations.last().copied() else {
                self.shared.may_hold_unclaimed.store(false, Ordering::Relaxed);
                return Ok(false);
            };
            let is_round_complete = first_listed.is_some_and(|first| organizations.contains(&first));
            first_listed = first_listed.or(organizations.first().copied());
            let has_more_organizations = organizations.len() >= chunk && !is_round_complete;
            self.shared.may_hold_unclaimed.store(true, Ordering::Relaxed);
            let Some(mut in_flight) = lane.try_acquire(chunk) else { return Ok(false) };
            let claim = self.claim(organizations, now(), chunk).await.map_err(|error| error.to_string())?;
            in_flight.reduce_to(claim.events.len());
            after = claim.last_turn.unwrap_or(last_listed);
            *lane.last_turn.locked() = after;
            let may_hold_unclaimed = has_more_organizations || claim.events.len() >= chunk;
            self.shared.may_hold_unclaimed.store(may_hold_unclaimed, Ordering::Relaxed);
            if !claim.events.is_empty() {
                if may_hold_unclaimed {
                    lane.wakeup.notify_one();
                }
                let (events, began) = (claim.events.len(), Instant::now());
                let when_all_fail = match failures < MAX_FAILURES {
                    true => WhenAllFail::StayParked,
                    false => WhenAllFail::ReturnToBus,
                };
                self.handle((work, &*work.handler), claim.events, when_all_fail, stop).await?;
                lane.chunk_size.adapt(events, began.elapsed());
                return Ok(true);
            }
            // Other workers have claimed all events of these organizations.
            if !has_more_organizations {
                break;
            }
        }
        Ok(false)
    }

    /// As `handle_chunk`, for the organizations with a small backlog. A chunk may be a single event, so when all of a chunk fail, that
    /// is no sign of an outage: they stay parked, and in this process only the other lane handles events of these organizations for a
    /// while.
    pub(super) async fn handle_priority_chunk(
        &self,
        work: &ParkedWork,
        stop: &CancellationToken,
    ) -> Result<bool, String> {
        if !self.shared.may_hold_unclaimed.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let lane = &self.shared.priority;
        let chunk = lane.chunk_size.get();
        let last_turn = *lane.last_turn.locked();
        let mut page = self.small_backlogs(last_turn, chunk).await.map_err(|error| error.to_string())?;
        page.organizations.retain(|organization| !lane.is_excluded(*organization));
        if page.organizations.is_empty() {
            *lane.last_turn.locked() = page.last_listed.unwrap_or(last_turn);
            return Ok(false);
        }
        let Some(mut in_flight) = lane.try_acquire(chunk) else { return Ok(false) };
        let claim = self.claim(page.organizations, now(), chunk).await.map_err(|error| error.to_string())?;
        in_flight.reduce_to(claim.events.len());
        if let Some(turn) = claim.last_turn.or(page.last_listed) {
            *lane.last_turn.locked() = turn;
        }
        if claim.events.is_empty() {
            return Ok(false);
        }
        let (events, began) = (claim.events.len(), Instant::now());
        let organizations: Vec<_> = claim.events.iter().map(|parked| parked.event.organization_id).collect();
        let handled =
            self.handle((work, &*work.priority_handler), claim.events, WhenAllFail::StayParked, stop);
        if let Err(reason) = handled.await {
            lane.exclude(organizations, EXCLUSION_TIME);
            return Err(reason);
        }
        lane.chunk_size.adapt(events, began.elapsed());
        Ok(true)
    }

    /// Fails in an outage: when no event could be handled, or the results could not be recorded. Fails, too, when an event
    /// failed while the process ends.
    async fn handle(
        &self,
        (work, handler): (&ParkedWork, &dyn Handler),
        claimed: Vec<ParkedEvent>,
        when_all_fail: WhenAllFail,
        stop: &CancellationToken,
    ) -> Result<(), String> {
        let mut settled = Settled::default();
        let (mut deliveries, mut keys) = (Vec::new(), Vec::new());
        for parked in claimed {
            match Delivery::parse(parked.event.payload.as_bytes(), 1) {
                // It may be what ends the process: the bus isolates it.
                Ok(delivery) if parked.earlier_claims >= cut_short::ISOLATION_THRESHOLD => {
                    settled.return_to_bus(delivery, parked.earlier_claims);
                }
                Ok(mut delivery) => {
                    delivery.times_cut_short = parked.earlier_claims;
                    keys.push(parked.key());
                    deliveries.push(delivery);
                }
                // Unreadable: on the bus it becomes a dead letter.
                Err(_) => settled.returned.push(parked.event),
            }
        }
        let outcomes = self.handle_under_lease((work, handler), &mut deliveries, &keys).await;
        let all_failed =
            !outcomes.iter().any(|outcome| matches!(outcome, Outcome::Done | Outcome::Reject { .. }));
        let is_outage = all_failed && when_all_fail == WhenAllFail::StayParked;
        let mut outage = None;
        for ((outcome, delivery), key) in outcomes.into_iter().zip(deliveries).zip(keys) {
            match outcome {
                Outcome::Done => settled.done.push(key),
                // The process ends, or all failed: the cause is not in these events.
                Outcome::Retry { reason } | Outcome::Postpone { reason }
                    if stop.is_cancelled() || is_outage =>
                {
                    settled.released.push(key);
                    outage = Some(reason);
                }
                Outcome::Retry { .. } | Outcome::Postpone { .. } | Outcome::Reject { .. } => {
                    settled.return_to_bus(delivery, 0);
                }
            }
        }
        let (has_returned, has_released) = (!settled.returned.is_empty(), !settled.released.is_empty());
        self.settle(settled).await.map_err(|error| error.to_string())?;
        if has_released {
            self.shared.may_hold_unclaimed.store(true, Ordering::Relaxed);
        }
        if has_returned {
            work.outbox.wake_for_returned();
        }
        outage.map_or(Ok(()), Err)
    }

    /// Calls the handler, and renews the lease meanwhile.
    async fn handle_under_lease(
        &self,
        (work, handler): (&ParkedWork, &dyn Handler),
        deliveries: &mut [Delivery],
        keys: &[Key],
    ) -> Vec<Outcome> {
        if deliveries.is_empty() {
            return Vec::new();
        }
        let handling = work.bus.handle_parked(work.queue, handler, deliveries);
        let renew = || self.renew(keys.to_vec(), now());
        let warning = "lease of parked events was not renewed: they may be handled twice";
        under_lease(handling, renew, warning).await
    }

    async fn update_gauge(&self, stop: CancellationToken) {
        while telemetry::is_on() {
            let started = Instant::now();
            match stop.run_until_cancelled(self.count(MAX_COUNTED)).await {
                Some(Ok(parked)) => metrics::set_parked(self.database.name(), parked),
                Some(Err(error)) => tracing::warn!(%error, "parked events cannot be counted"),
                None => return,
            }
            let pause = GAUGE_INTERVAL.max(started.elapsed() * GAUGE_PAUSE_FACTOR);
            if stop.run_until_cancelled(sleep(pause)).await.is_none() {
                return;
            }
        }
    }
}

impl Settled {
    fn return_to_bus(&mut self, mut delivery: Delivery, times_cut_short: u32) {
        delivery.is_returned = true;
        match delivery.to_outgoing() {
            Ok(event) => self.returned.push(OutgoingEvent { times_cut_short, ..event }),
            // A bug, because it was decoded before. The event stays parked.
            Err(error) => {
                tracing::error!(event_id = %delivery.id, %error, "a parked event cannot be returned")
            }
        }
    }
}

impl Default for Pauses {
    fn default() -> Self {
        Self { failures: 0, delays: OUTAGE_BACKOFF.build() }
    }
}

impl Pauses {
    fn next(&mut self, reason: &str) -> Duration {
        self.failures = self.failures.saturating_add(1);
        if self.failures == 1 {
            tracing::warn!(reason, "parked events cannot be handled: trying again");
        }
        self.delays.next().unwrap_or(POLL_INTERVAL)
    }

    fn end(&mut self) {
        if self.failures > 0 {
            tracing::info!(failures = self.failures, "parked events are handled again");
            *self = Self::default();
        }
    }
}
