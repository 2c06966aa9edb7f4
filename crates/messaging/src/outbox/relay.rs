//! The relay: publishes the events of an outbox on the bus.

use std::sync::Arc;
use std::time::Duration;

use assay_contracts::ids::EventId;
use assay_contracts::time::Timestamp;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::now;
use backon::{BackoffBuilder, ExponentialBuilder};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::Outbox;
use super::gauges::update_gauges;
use super::poll_schedule::PollSchedule;
use super::rows::{BatchLimit, ClaimedEvent, IsolatedClaim, Postponed, PublishResults};
use crate::backoff::backoff;
use crate::bus::{Bus, PublishError, cut_short};
use crate::envelope::OutgoingEvent;
use crate::lease::under_lease;
use crate::metrics;

/// Claims published concurrently. On the local bus a slow consumer blocks one of them.
const MAX_CONCURRENT_BATCHES: usize = 4;
/// Delays between attempts of an event that a consumer failed to handle or the broker refused.
const RETRY_BACKOFF: ExponentialBuilder = backoff(Duration::from_secs(1), Duration::from_secs(60));
/// Attempts of an event that the broker refuses because of the event itself. Together they take up to half a minute.
const MAX_REFUSALS: u32 = 6;
/// An unroutable event is retried after a delay as long as its age, within these bounds.
const UNROUTABLE_DELAY_MILLIS: (i64, i64) = (1_000, 10_000);
/// Delays between attempts to record results.
const RECORD_BACKOFF: ExponentialBuilder = backoff(Duration::from_millis(100), Duration::from_secs(2));
const RECORD_ATTEMPTS: u32 = 5;
/// Minimum and maximum time between two attempts to claim isolated events; in between others are published concurrently.
const ISOLATED_WAIT: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
/// Claims during shutdown. A larger backlog is left to the next start, or to other relays.
const FLUSH_BATCHES: usize = 4;
/// For publishing after the stop: well within the time that a process has for its shutdown.
const FLUSH_DEADLINE: Duration = Duration::from_secs(5);

/// Publishes the events of `outbox` until `stop` is cancelled, then flushes due events: a few batches, within five seconds.
/// The rest stays in the table for the next start or for another relay. Recovers from outages of the bus and of the
/// database. Any number of relays may share an outbox. A task of `Phase::Background`.
pub fn relay(outbox: Outbox, bus: Bus, stop: CancellationToken) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        tokio::join!(publish_all(outbox.clone(), bus, stop.clone()), update_gauges(outbox, stop));
    })
}

async fn publish_all(outbox: Outbox, bus: Bus, stop: CancellationToken) {
    let mut schedule = PollSchedule::default();
    let mut publishing = FuturesUnordered::new();
    let isolated_from = Instant::now() + cut_short::ISOLATION_START_DELAY;
    // When the next isolated event is due: nothing is published concurrently with it. At the start there may be one.
    let mut isolated_due = Some(isolated_from);
    while !stop.is_cancelled() {
        if outbox.take_has_returned() {
            isolated_due = Some(isolated_from);
        }
        let is_isolated_due = isolated_due.is_some_and(|due| due <= Instant::now());
        let is_limited = is_isolated_due || schedule.in_outage();
        let max_batches = if is_limited { 1 } else { MAX_CONCURRENT_BATCHES };
        outbox.fast_path.set_open(!is_limited);
        let has_room = publishing.len() < max_batches;
        if has_room && schedule.is_due() {
            match claim(&outbox, &mut schedule, is_isolated_due, &mut isolated_due).await {
                Ok(claimed) if claimed.is_empty() => schedule.schedule_regular_poll(),
                Ok(claimed) => publishing.push(publish(&outbox, &bus, &stop, claimed)),
                Err(error) => schedule.record_failure(&error.to_string()),
            }
            continue;
        }
        let takes_new_events = has_room && !schedule.in_outage();
        if takes_new_events {
            let dispatched = outbox.fast_path.take(now(), BatchLimit::CLAIM);
            if !dispatched.is_empty() {
                publishing.push(publish(&outbox, &bus, &stop, dispatched));
                continue;
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            Some(result) = publishing.next() => match result {
                Ok(()) => schedule.record_success(),
                Err(reason) => schedule.record_failure(&reason),
            },
            () = schedule.wait_until_due(), if has_room => {}
            () = outbox.committed.notified(), if takes_new_events => schedule.poll_at_once(),
            () = outbox.fast_path.arrived.notified(), if takes_new_events => {}
        }
    }
    outbox.fast_path.set_open(false);
    let flushed = async {
        let mut bus_is_up = true;
        while let Some(result) = publishing.next().await {
            bus_is_up &= result.is_ok();
        }
        if bus_is_up {
            flush(&outbox, &bus, &stop).await;
        }
    };
    if timeout(FLUSH_DEADLINE, flushed).await.is_err() {
        tracing::warn!(
            "publishing did not finish during shutdown: its events are published again when their lease expires"
        );
    }
    release_dispatched(&outbox).await;
}

/// Releases the claims of events that are left on the fast path, so that other relays can publish them at once.
async fn release_dispatched(outbox: &Outbox) {
    let dispatched = outbox.fast_path.take(now(), BatchLimit::UNLIMITED);
    if dispatched.is_empty() {
        return;
    }
    let released = dispatched.into_iter().map(|row| row.event.id).collect();
    record_results(outbox, PublishResults { released, ..PublishResults::default() }).await;
}

/// Publishes due events during shutdown. Ends at the first outage: the events stay in the outbox.
async fn flush(outbox: &Outbox, bus: &Bus, stop: &CancellationToken) {
    for _ in 0..FLUSH_BATCHES {
        let dispatched = outbox.fast_path.take(now(), BatchLimit::CLAIM);
        let claimed =
            if dispatched.is_empty() { outbox.claim(now(), BatchLimit::CLAIM).await } else { Ok(dispatched) };
        let claimed = match claimed {
            Ok(claimed) if claimed.is_empty() => return,
            Ok(claimed) => claimed,
            Err(error) => {
                tracing::warn!(%error, "outbox cannot be read during shutdown: its events wait for the next start");
                return;
            }
        };
        if let Err(reason) = publish(outbox, bus, stop, claimed).await {
            tracing::info!(reason, "events cannot be published during shutdown: they wait in the outbox");
            return;
        }
    }
}

/// Claims rows to publish together. With `is_isolated_due` it first tries one isolated row; if none can be claimed, it sets
/// `isolated_due` to the time at which to look again, or `None` when no row is isolated, and claims other rows.
async fn claim(
    outbox: &Outbox,
    schedule: &mut PollSchedule,
    is_isolated_due: bool,
    isolated_due: &mut Option<Instant>,
) -> Result<Vec<ClaimedEvent>, DatabaseError> {
    if schedule.take_clock_repair() {
        outbox.repair_clock_skew(now()).await?;
    }
    if is_isolated_due {
        *isolated_due = match outbox.claim_isolated(now()).await? {
            IsolatedClaim::Due(claimed) => return Ok(vec![claimed]),
            // The first one may be claimed by another process, or be rescheduled.
            IsolatedClaim::Waiting(due) => {
                let wait =
                    u64::try_from(due.millis_since(now())).map_or(Duration::ZERO, Duration::from_millis);
                let [shortest, longest] = ISOLATED_WAIT;
                Some(Instant::now() + wait.clamp(shortest, longest))
            }
            IsolatedClaim::NoneIsolated => None,
        }
    }
    let claimed = outbox.claim(now(), BatchLimit::CLAIM).await?;
    let bytes: usize = claimed.iter().map(|row| row.event.payload.len()).sum();
    if claimed.len() < BatchLimit::CLAIM.events as usize && bytes < BatchLimit::CLAIM.bytes / 2 {
        // All due rows are claimed, unless the next one is very large; later commits wake the relay.
        schedule.schedule_regular_poll();
    }
    Ok(claimed)
}

/// Publishes claimed rows and records the results. Fails when the bus is down or, during shutdown, when consumers are
/// missing: on the local bus they stop before the relay.
async fn publish(
    outbox: &Outbox,
    bus: &Bus,
    stop: &CancellationToken,
    claimed: Vec<ClaimedEvent>,
) -> Result<(), String> {
    let (events, created): (Vec<OutgoingEvent>, Vec<Timestamp>) =
        claimed.into_iter().map(|row| (row.event, row.created_at)).unzip();
    let ids: Vec<EventId> = events.iter().map(|event| event.id).collect();
    // On the local bus publishing takes as long as the consumers' work.
    let renew = || outbox.renew(ids.clone(), now());
    let warning = "lease of outbox rows was not renewed: they may be published twice";
    let results = under_lease(bus.publish(&events), renew, warning).await;
    let mut outcomes = PublishResults::default();
    let mut outage = Ok(());
    let is_stopping = stop.is_cancelled();
    for ((event, created_at), result) in events.iter().zip(created).zip(results) {
        let result = if is_stopping { result.map_err(during_shutdown) } else { result };
        if result.is_ok() {
            metrics::count_published(&event.topic);
        }
        if let Err(PublishError::Unavailable(reason)) = &result {
            outage = Err(reason.clone());
        }
        outcomes.add(event, created_at, result, now());
    }
    outcomes.log();
    record_results(outbox, outcomes).await;
    outage
}

/// During shutdown a missing consumer has only stopped before the relay: that is an outage, not a failure of the event.
fn during_shutdown(error: PublishError) -> PublishError {
    match error {
        PublishError::Unroutable { .. } => PublishError::Unavailable(error.to_string()),
        other => other,
    }
}

async fn record_results(outbox: &Outbox, results: PublishResults) {
    let results = Arc::new(results);
    for (attempt, delay) in (1..=RECORD_ATTEMPTS).zip(RECORD_BACKOFF.build()) {
        let Err(error) = outbox.record_results(results.clone(), now()).await else { return };
        tracing::warn!(%error, attempt, "results of outbox rows were not recorded");
        sleep(delay).await;
    }
    tracing::error!(
        "results of outbox rows were not recorded: they are published again when their lease expires"
    );
}

impl PublishResults {
    fn add(
        &mut self,
        event: &OutgoingEvent,
        created_at: Timestamp,
        result: Result<(), PublishError>,
        now: Timestamp,
    ) {
        let id = event.id;
        let Err(error) = result else { return self.published.push(id) };
        let text = error.to_string();
        match error {
            PublishError::Unavailable(_) => self.released.push(id),
            PublishError::Unroutable { .. } => {
                let (shortest, longest) = UNROUTABLE_DELAY_MILLIS;
                let age = now.millis_since(created_at);
                let next_attempt_at = now.plus_millis(age.clamp(shortest, longest));
                self.postponed.push(Postponed { id, counts_attempt: false, next_attempt_at, reason: text });
            }
            PublishError::Refused { .. } if event.attempt >= MAX_REFUSALS => self.dead.push((id, text)),
            PublishError::Retry { .. } | PublishError::Refused { .. } => {
                let delay =
                    RETRY_BACKOFF.build().nth(event.attempt.saturating_sub(1) as usize).unwrap_or_default();
                let next_attempt_at = now.plus_millis(i64::try_from(delay.as_millis()).unwrap_or(i64::MAX));
                self.postponed.push(Postponed { id, counts_attempt: true, next_attempt_at, reason: text });
            }
            PublishError::Rejected { .. } => self.dead.push((id, text)),
        }
    }

    fn log(&self) {
        if let Some(first) = self.postponed.first() {
            let (events, reason) = (self.postponed.len(), &first.reason);
            tracing::warn!(events, reason, "events were not published: they are retried later");
        }
        for (event_id, reason) in &self.dead {
            tracing::error!(%event_id, reason, "event is dead: it stays in the outbox for an operator");
        }
    }
}
