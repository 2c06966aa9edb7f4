//! Calls of a handler, which may panic or return a wrong number of outcomes. They are counted and traced here.

use std::panic::AssertUnwindSafe;

use assay_platform::telemetry::traces::Span;
use futures_util::FutureExt;

use super::delivery::{Delivery, Handler, Outcome};
use super::in_flight::InFlightGuard;
use crate::metrics::{self, HandlerTimer};

/// Calls the handler; returns exactly one outcome for each delivery.
pub(super) async fn invoke(
    handler: &dyn Handler,
    deliveries: &mut [Delivery],
    in_flight: InFlightGuard,
    max_attempts: u32,
) -> Vec<Outcome> {
    let queue = in_flight.queue();
    let timer = HandlerTimer::start(queue, deliveries.iter().map(|delivery| delivery.occurred_at));
    let mut spans = Vec::with_capacity(deliveries.len());
    for delivery in deliveries.iter_mut() {
        delivery.is_last_attempt = delivery.attempt >= max_attempts;
        spans.push(delivery.begin_span(queue));
    }
    let outcomes = call(handler, deliveries).await;
    for ((span, outcome), delivery) in spans.into_iter().zip(&outcomes).zip(&*deliveries) {
        end_span(span, outcome);
        match outcome {
            Outcome::Done => timer.count_done(),
            Outcome::Retry { .. } if !delivery.is_last_attempt => metrics::count_retried(queue),
            Outcome::Retry { .. } | Outcome::Reject { .. } => metrics::count_dead(queue),
        }
    }
    outcomes
}

fn end_span(mut span: Span, outcome: &Outcome) {
    match outcome {
        Outcome::Done => {}
        Outcome::Retry { .. } => span.fail("it is tried again later"),
        Outcome::Reject { .. } => span.fail("no attempt will succeed"),
    }
}

async fn call(handler: &dyn Handler, deliveries: &[Delivery]) -> Vec<Outcome> {
    // `AssertUnwindSafe`: a handler must keep its own state valid when it panics.
    match AssertUnwindSafe(handler.handle(deliveries)).catch_unwind().await {
        Ok(outcomes) if outcomes.len() == deliveries.len() => outcomes,
        Ok(outcomes) => {
            let reason =
                format!("handler answered {} outcomes for {} deliveries", outcomes.len(), deliveries.len());
            tracing::error!(reason, "handler returned a wrong number of outcomes");
            retry_all(deliveries, &reason)
        }
        Err(panic) => {
            let reason = format!("handler panicked: {}", panic_text(&*panic));
            tracing::error!(reason, "handler panicked");
            retry_all(deliveries, &reason)
        }
    }
}

fn retry_all(deliveries: &[Delivery], reason: &str) -> Vec<Outcome> {
    deliveries.iter().map(|_| Outcome::Retry { reason: reason.to_owned() }).collect()
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}
