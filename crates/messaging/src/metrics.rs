//! Metrics of the bus and the outbox: `proto-docs/metrics.md`.

use std::time::{Duration, Instant};

use assay_contracts::time::Timestamp;
use assay_platform::runtime::now;
use assay_platform::telemetry::metrics as telemetry;
use metrics::{
    Counter, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

/// Times one call of a handler and counts the deliveries that are done.
pub(crate) struct HandlerTimer {
    queue: &'static str,
    done: Counter,
    started: Instant,
}

impl HandlerTimer {
    /// Starts the timer of a call, and records the ages of its events, which occurred at these times.
    pub(crate) fn start(queue: &'static str, occurred: impl Iterator<Item = Timestamp>) -> Self {
        if telemetry::is_on() {
            let ages = histogram!("assay_event_age_seconds", "queue" => queue);
            let now = now();
            for occurred_at in occurred {
                let age = u64::try_from(now.millis_since(occurred_at)).unwrap_or_default();
                ages.record(Duration::from_millis(age));
            }
        }
        let done = counter!("assay_events_handled_total", "queue" => queue, "outcome" => "done");
        Self { queue, done, started: Instant::now() }
    }

    pub(crate) fn count_done(&self) {
        self.done.increment(1);
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

/// Counts a delivery that failed and has further attempts.
pub(crate) fn count_retried(queue: &'static str) {
    counter!("assay_events_handled_total", "queue" => queue, "outcome" => "retried").increment(1);
}

/// Counts a delivery that became a dead letter.
pub(crate) fn count_dead(queue: &'static str) {
    counter!("assay_events_handled_total", "queue" => queue, "outcome" => "dead").increment(1);
}

pub(crate) fn count_published(topic: &str) {
    if telemetry::is_on() {
        counter!("assay_events_published_total", "topic" => topic.to_owned()).increment(1);
    }
}

/// Sets the gauges of an outbox.
pub(crate) fn set_outbox(database: &'static str, pending: u64, dead: u64, oldest_millis: i64) {
    gauge!("assay_outbox_events", "database" => database, "state" => "waiting").set(pending as f64);
    gauge!("assay_outbox_events", "database" => database, "state" => "dead").set(dead as f64);
    gauge!("assay_outbox_oldest_seconds", "database" => database).set(oldest_millis as f64 / 1_000.0);
}

/// Sets the gauge of parked events.
pub(crate) fn set_parked(database: &'static str, events: u64) {
    gauge!("assay_parked_events", "database" => database).set(events as f64);
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
        "assay_parked_events",
        Unit::Count,
        "Events that were taken from the bus and wait for their turn: organizations take turns. Counted up to a million"
    );
    describe_gauge!(
        "assay_outbox_oldest_seconds",
        Unit::Seconds,
        "Age of the oldest event that waits to be published"
    );
}
