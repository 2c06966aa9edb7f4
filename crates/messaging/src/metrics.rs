//! Metrics of the bus and the outbox: `proto-docs/metrics.md`.

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

/// Interval of the outbox gauges.
const OUTBOX_INTERVAL: Duration = Duration::from_secs(10);

/// Times one call of a handler and counts its outcomes.
pub(crate) struct HandlerTimer {
    queue: &'static str,
    done: Counter,
    started: Instant,
}

impl HandlerTimer {
    pub(crate) fn start(queue: &'static str, deliveries: &[Delivery]) -> Self {
        if telemetry::is_on() {
            let ages = histogram!("assay_event_age_seconds", "queue" => queue);
            let now = now();
            for delivery in deliveries {
                let age = u64::try_from(now.millis_since(delivery.occurred_at)).unwrap_or_default();
                ages.record(Duration::from_millis(age));
            }
        }
        let done = counter!("assay_events_handled_total", "queue" => queue, "outcome" => "done");
        Self { queue, done, started: Instant::now() }
    }

    /// Counts the outcome of one delivery.
    pub(crate) fn count(&self, outcome: &Outcome, attempt: u32, max_attempts: u32) {
        match outcome {
            Outcome::Done => self.done.increment(1),
            Outcome::Retry { .. } if attempt < max_attempts => count_failed(self.queue, "retried"),
            Outcome::Retry { .. } | Outcome::Reject { .. } => count_failed(self.queue, "dead"),
        }
    }
}

impl Drop for HandlerTimer {
    fn drop(&mut self) {
        histogram!("assay_handling_duration_seconds", "queue" => self.queue).record(self.started.elapsed());
    }
}

/// Initialises the counters of a queue with 0: `increase` misses the first failure of a counter that starts at 1.
pub(crate) fn register_queue(queue: &'static str) {
    for outcome in ["done", "retried", "dead"] {
        counter!("assay_events_handled_total", "queue" => queue, "outcome" => outcome).increment(0);
    }
}

/// Counts a message that cannot be parsed and becomes a dead letter without a call of the handler.
pub(crate) fn count_unreadable(queue: &'static str) {
    count_failed(queue, "dead");
}

fn count_failed(queue: &'static str, outcome: &'static str) {
    counter!("assay_events_handled_total", "queue" => queue, "outcome" => outcome).increment(1);
}

pub(crate) fn count_published(event: &OutgoingEvent) {
    if telemetry::is_on() {
        counter!("assay_events_published_total", "topic" => event.topic.clone()).increment(1);
    }
}

/// Updates the gauges of an outbox until `stop`.
pub(crate) async fn watch_outbox(outbox: Outbox, stop: CancellationToken) {
    if telemetry::is_on() {
        periodically("outbox metrics", OUTBOX_INTERVAL, stop, || update_outbox(&outbox)).await;
    }
}

async fn update_outbox(outbox: &Outbox) -> Result<(), BoxError> {
    let status = outbox.status().await?;
    let database = outbox.database().name();
    let oldest = status.oldest_pending.map_or(0, |oldest| now().millis_since(oldest).max(0));
    gauge!("assay_outbox_events", "database" => database, "state" => "waiting").set(status.pending as f64);
    gauge!("assay_outbox_events", "database" => database, "state" => "dead").set(status.dead as f64);
    gauge!("assay_outbox_oldest_seconds", "database" => database).set(oldest as f64 / 1_000.0);
    Ok(())
}

/// Describes the metrics. Called when a bus is opened.
pub(crate) fn describe() {
    describe_counter!(
        "assay_events_published_total",
        Unit::Count,
        "Events that were published: confirmed by RabbitMQ, or handled within one process"
    );
    describe_counter!(
        "assay_events_handled_total",
        Unit::Count,
        "Deliveries by outcome: done, to be retried, or dead"
    );
    describe_histogram!(
        "assay_event_age_seconds",
        Unit::Seconds,
        "Age of an event when a handler is called with it"
    );
    describe_histogram!(
        "assay_handling_duration_seconds",
        Unit::Seconds,
        "Duration of one handler call, for a batch of events"
    );
    describe_gauge!(
        "assay_outbox_events",
        Unit::Count,
        "Events in the outbox: waiting to be published, or dead"
    );
    describe_gauge!(
        "assay_outbox_oldest_seconds",
        Unit::Seconds,
        "Age of the oldest event that waits to be published"
    );
}
