//! From the outbox to the bus, for as long as the process lives.

use std::sync::Arc;
use std::time::Duration;

use assay_contracts::ids::EventId;
use assay_contracts::time::Timestamp;
use assay_platform::runtime::{BoxError, now};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::pace::Pace;
use super::{Claimed, LEASE_MILLIS, Outbox, Postponed, Settlement};
use crate::backoff::Backoff;
use crate::bus::{Bus, PublishError};
use crate::envelope::OutgoingEvent;
use crate::metrics;

/// Events of one claim.
const BATCH: u32 = 256;
/// Claims that are being published at the same time. On the local bus a slow consumer holds one of them.
const SLOTS: usize = 4;
/// Before the next attempt of an event that a consumer could not handle.
const RETRY: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(60) };
/// An event without a consumer is tried again after its age, but within these bounds.
const UNROUTABLE_MILLIS: (i64, i64) = (1_000, 10_000);
/// Between attempts at writing down what became of events.
const SETTLE: Backoff = Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(2) };
const SETTLE_ATTEMPTS: u32 = 5;
/// Claims after the stop. A larger backlog is for the next start, or for other relays.
const LAST_BATCHES: usize = 4;
/// From the stop to the end, whatever is still being published: well within what a process is given for stopping.
const LAST_FLUSH: Duration = Duration::from_secs(5);

/// Publishes what `outbox` holds until `stop` is cancelled, and then once more what is due: a few batches, for five
/// seconds at most. The rest waits in the table for the next start or for another relay. Waits out every outage of the
/// bus and of the database. Any number of relays may share an outbox. A task of `Phase::Relay`.
///
/// # Errors
/// None at present: every failure is waited out.
pub async fn relay(outbox: Outbox, bus: Bus, stop: CancellationToken) -> Result<(), BoxError> {
    let watching = metrics::watch_outbox(outbox.clone(), stop.clone());
    let ((), ()) = tokio::try_join!(publish_all(outbox, bus, stop), watching)?;
    Ok(())
}

async fn publish_all(outbox: Outbox, bus: Bus, stop: CancellationToken) -> Result<(), BoxError> {
    let mut pace = Pace::default();
    let mut publishing = FuturesUnordered::new();
    while !stop.is_cancelled() {
        let slots = if pace.in_outage() { 1 } else { SLOTS };
        outbox.handovers.set_open(!pace.in_outage());
        if publishing.len() < slots && pace.is_due() {
            match claim(&outbox, &mut pace).await {
                Ok(claimed) if claimed.is_empty() => pace.rest(),
                Ok(claimed) => publishing.push(publish(&outbox, &bus, &stop, claimed)),
                Err(reason) => pace.failed(&reason),
            }
            continue;
        }
        if publishing.len() < slots && !pace.in_outage() {
            let handed = outbox.handovers.take(now(), BATCH);
            if !handed.is_empty() {
                publishing.push(publish(&outbox, &bus, &stop, handed));
                continue;
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            Some(result) = publishing.next() => match result {
                Ok(()) => pace.succeeded(),
                Err(reason) => pace.failed(&reason),
            },
            () = pace.due(), if publishing.len() < slots => {}
            () = outbox.committed.notified(), if publishing.len() < slots && !pace.in_outage() => pace.wake(),
            () = outbox.handovers.arrived.notified(), if publishing.len() < slots && !pace.in_outage() => {}
        }
    }
    outbox.handovers.set_open(false);
    let last_flush = async {
        let mut go_on = true;
        while let Some(result) = publishing.next().await {
            go_on &= result.is_ok();
        }
        if go_on {
            flush(&outbox, &bus, &stop).await;
        }
    };
    if timeout(LAST_FLUSH, last_flush).await.is_err() {
        tracing::warn!(
            "publishing was given up at the stop: its events are published again when their lease ends"
        );
    }
    give_back(&outbox).await;
    Ok(())
}

/// What was handed over and cannot be published any more: nobody has to wait for the end of its lease.
async fn give_back(outbox: &Outbox) {
    let handed = outbox.handovers.take(now(), u32::MAX);
    if handed.is_empty() {
        return;
    }
    let released = handed.into_iter().map(|row| row.event.id).collect();
    settle(outbox, Settlement { released, ..Settlement::default() }).await;
}

/// What is due at the stop. Ends as soon as nobody takes events any more: they are not lost, they only wait.
async fn flush(outbox: &Outbox, bus: &Bus, stop: &CancellationToken) {
    for _ in 0..LAST_BATCHES {
        let handed = outbox.handovers.take(now(), BATCH);
        let claimed = if handed.is_empty() { outbox.claim(now(), BATCH).await } else { Ok(handed) };
        let claimed = match claimed {
            Ok(claimed) if claimed.is_empty() => return,
            Ok(claimed) => claimed,
            Err(error) => {
                tracing::warn!(%error, "outbox cannot be read at the stop: its events wait for the next start");
                return;
            }
        };
        if let Err(reason) = publish(outbox, bus, stop, claimed).await {
            tracing::info!(reason, "events are not taken at the stop: they wait in the outbox");
            return;
        }
    }
}

async fn claim(outbox: &Outbox, pace: &mut Pace) -> Result<Vec<Claimed>, String> {
    if pace.clock_check_is_due() {
        outbox.undo_clock_steps(now()).await.map_err(|error| error.to_string())?;
    }
    let claimed = outbox.claim(now(), BATCH).await.map_err(|error| error.to_string())?;
    if claimed.len() < BATCH as usize {
        // All that was due. What is committed from here on wakes us.
        pace.rest();
    }
    Ok(claimed)
}

/// Publishes claimed rows and writes down what became of them. An error says that the bus is down, or, once we are
/// stopping, that consumers are missing: on the local bus they stop before we do.
async fn publish(
    outbox: &Outbox,
    bus: &Bus,
    stop: &CancellationToken,
    claimed: Vec<Claimed>,
) -> Result<(), String> {
    let (events, created): (Vec<OutgoingEvent>, Vec<Timestamp>) =
        claimed.into_iter().map(|row| (row.event, row.created_at)).unzip();
    let results = publish_under_lease(outbox, bus, &events).await;
    let mut settlement = Settlement::default();
    let mut outage = Ok(());
    let stopping = stop.is_cancelled();
    for ((event, created_at), result) in events.iter().zip(created).zip(results) {
        let result = if stopping { result.map_err(as_seen_at_the_stop) } else { result };
        if result.is_ok() {
            metrics::published(event);
        }
        if let Err(PublishError::Unavailable(reason)) = &result {
            outage = Err(reason.clone());
        }
        settlement.add(event, created_at, result, now());
    }
    settlement.log();
    settle(outbox, settlement).await;
    outage
}

/// A consumer that is missing at the stop has only stopped before us: that says nothing about the event.
fn as_seen_at_the_stop(error: PublishError) -> PublishError {
    match error {
        PublishError::Unroutable { .. } => PublishError::Unavailable(error.to_string()),
        other => other,
    }
}

/// Publishing can take longer than a lease on the local bus, where it ends with the consumer's work.
async fn publish_under_lease(
    outbox: &Outbox,
    bus: &Bus,
    events: &[OutgoingEvent],
) -> Vec<Result<(), PublishError>> {
    let ids: Vec<EventId> = events.iter().map(|event| event.id).collect();
    let renewal = Duration::from_millis(LEASE_MILLIS.unsigned_abs() / 3);
    let publishing = bus.publish(events);
    tokio::pin!(publishing);
    loop {
        tokio::select! {
            results = &mut publishing => return results,
            () = sleep(renewal) => {
                if let Err(error) = outbox.renew(ids.clone(), now()).await {
                    tracing::warn!(%error, "lease of outbox rows was not renewed: they may be published twice");
                }
            }
        }
    }
}

async fn settle(outbox: &Outbox, settlement: Settlement) {
    let settlement = Arc::new(settlement);
    for attempt in 1..=SETTLE_ATTEMPTS {
        let Err(error) = outbox.settle(settlement.clone(), now()).await else { return };
        tracing::warn!(%error, attempt, "outbox rows were not settled");
        sleep(SETTLE.delay(attempt)).await;
    }
    tracing::error!("outbox rows were not settled: they are published again when their lease ends");
}

impl Settlement {
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
                let delay = now.millis_since(created_at).clamp(UNROUTABLE_MILLIS.0, UNROUTABLE_MILLIS.1);
                let next_attempt_at = now.plus_millis(delay);
                self.postponed.push(Postponed { id, counts: false, next_attempt_at, reason: text });
            }
            PublishError::Retry { .. } => {
                let delay = RETRY.delay(event.attempt).as_millis();
                let next_attempt_at = now.plus_millis(i64::try_from(delay).unwrap_or(i64::MAX));
                self.postponed.push(Postponed { id, counts: true, next_attempt_at, reason: text });
            }
            PublishError::Rejected { .. } => self.dead.push((id, text)),
        }
    }

    fn log(&self) {
        if let Some(first) = self.postponed.first() {
            let (events, reason) = (self.postponed.len(), &first.reason);
            tracing::warn!(events, reason, "events were not taken: they are tried again later");
        }
        for (event_id, reason) in &self.dead {
            tracing::error!(%event_id, reason, "event is dead: it stays in the outbox for an operator");
        }
    }
}
