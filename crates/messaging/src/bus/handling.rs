//! Calling a handler without trusting it: it may panic or miscount. What comes of it is counted and traced here.

use std::panic::AssertUnwindSafe;

use assay_platform::telemetry::traces::Span;
use futures_util::FutureExt;

use super::delivery::{Delivery, Handler, Outcome};
use super::in_hand::Handling;
use crate::metrics::Handled;

/// The handler's outcomes, one for each delivery whatever it does.
pub(super) async fn handle(
    handler: &dyn Handler,
    deliveries: &mut [Delivery],
    in_hand: Handling,
    max_attempts: u32,
) -> Vec<Outcome> {
    let queue = in_hand.queue();
    let counted = Handled::begin(queue, deliveries);
    let spans: Vec<Span> = deliveries.iter_mut().map(|delivery| delivery.begin_span(queue)).collect();
    let outcomes = call(handler, deliveries).await;
    for ((span, outcome), delivery) in spans.into_iter().zip(&outcomes).zip(&*deliveries) {
        end_span(span, outcome);
        counted.count(outcome, delivery.attempt, max_attempts);
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
    // The handler's state is its own: whoever panics in it decides what the next call finds.
    match AssertUnwindSafe(handler.handle(deliveries)).catch_unwind().await {
        Ok(outcomes) if outcomes.len() == deliveries.len() => outcomes,
        Ok(outcomes) => {
            let reason =
                format!("handler answered {} outcomes for {} deliveries", outcomes.len(), deliveries.len());
            tracing::error!(reason, "handler is wrong");
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
