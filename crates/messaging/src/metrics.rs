//! What is counted of events on their way: `proto-docs/metrics.md`.

use std::time::{Duration, Instant};

use assay_platform::runtime::{BoxError, now, periodically};
use assay_platform::telemetry::metrics as telemetry;
use metrics::{
    Counter, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use tokio_util::sync::CancellationToken;

use crate::bus::{Delivery, Outcome};
use crate::envelope::OutgoingEvent;
use crate::outbox::Outbox;

/// How often an outbox is counted.
const OUTBOX_INTERVAL: Duration = Duration::from_secs(10);

/// Deliveries that a handler has in its hands.
pub(crate) struct Handled {
    queue: &'static str,
    done: Counter,
    began: Instant,
}

impl Handled {
    /// A handler is given `deliveries`.
    pub(crate) fn begin(queue: &'static str, deliveries: &[Delivery]) -> Self {
        if telemetry::is_on() {
            let ages = histogram!("assay_event_age_seconds", "queue" => queue);
            let now = now();
            for delivery in deliveries {
                let age = u64::try_from(now.millis_since(delivery.occurred_at)).unwrap_or_default();
                ages.record(Duration::from_millis(age));
            }
        }
        let done = counter!("assay_events_handled_total", "queue" => queue, "outcome" => "done");
        Self { queue, done, began: Instant::now() }
    }

    /// One of them has come to an end, in this attempt of so many.
    pub(crate) fn count(&self, outcome: &Outcome, attempt: u32, max_attempts: u32) {
        match outcome {
            Outcome::Done => self.done.increment(1),
            Outcome::Retry { .. } if attempt < max_attempts => failed(self.queue, "retried"),
            Outcome::Retry { .. } | Outcome::Reject { .. } => failed(self.queue, "dead"),
        }
    }
}

impl Drop for Handled {
    fn drop(&mut self) {
        histogram!("assay_handling_duration_seconds", "queue" => self.queue).record(self.began.elapsed());
    }
}

/// A queue is consumed: its failures are told of from the first one on, which a counter that appears with it would hide.
pub(crate) fn consuming(queue: &'static str) {
    for outcome in ["done", "retried", "dead"] {
        counter!("assay_events_handled_total", "queue" => queue, "outcome" => outcome).increment(0);
    }
}

/// A message of the queue cannot be read, and becomes a dead letter without a handler.
pub(crate) fn unreadable(queue: &'static str) {
    failed(queue, "dead");
}

fn failed(queue: &'static str, outcome: &'static str) {
    counter!("assay_events_handled_total", "queue" => queue, "outcome" => outcome).increment(1);
}

/// The bus has taken an event.
pub(crate) fn published(event: &OutgoingEvent) {
    if telemetry::is_on() {
        counter!("assay_events_published_total", "topic" => event.topic.clone()).increment(1);
    }
}

/// Shows what waits in an outbox, until `stop`.
pub(crate) async fn watch_outbox(outbox: Outbox, stop: CancellationToken) -> Result<(), BoxError> {
    if !telemetry::is_on() {
        return Ok(());
    }
    periodically("outbox metrics", OUTBOX_INTERVAL, stop, || show(&outbox)).await
}

async fn show(outbox: &Outbox) -> Result<(), BoxError> {
    let status = outbox.status().await?;
    let database = outbox.database().name();
    let oldest = status.oldest_pending.map_or(0, |oldest| now().millis_since(oldest).max(0));
    gauge!("assay_outbox_events", "database" => database, "state" => "waiting").set(status.pending as f64);
    gauge!("assay_outbox_events", "database" => database, "state" => "dead").set(status.dead as f64);
    gauge!("assay_outbox_oldest_seconds", "database" => database).set(oldest as f64 / 1_000.0);
    Ok(())
}

/// Says what is counted here. Called when a bus is opened.
pub(crate) fn describe() {
    describe_counter!(
        "assay_events_published_total",
        Unit::Count,
        "Events that the bus has taken: on RabbitMQ when it has stored them, in one process when they were handled"
    );
    describe_counter!(
        "assay_events_handled_total",
        Unit::Count,
        "Events that consumers have handled (done), put off (retried) or given up (dead)"
    );
    describe_histogram!(
        "assay_event_age_seconds",
        Unit::Seconds,
        "How old an event is when a consumer begins to handle it"
    );
    describe_histogram!(
        "assay_handling_duration_seconds",
        Unit::Seconds,
        "How long a consumer has events in its hands, those of a batch together"
    );
    describe_gauge!(
        "assay_outbox_events",
        Unit::Count,
        "Events that wait for the bus, and those that were given up"
    );
    describe_gauge!(
        "assay_outbox_oldest_seconds",
        Unit::Seconds,
        "Since when the oldest event waits for the bus"
    );
}
