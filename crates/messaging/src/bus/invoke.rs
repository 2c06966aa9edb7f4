//! Calls a handler, which may panic or return a wrong number of outcomes. Counts and traces the calls, and separates
//! deliveries that failed before from other deliveries.

use std::ops::Range;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::stream::{self, StreamExt};

use super::cut_short;
use super::delivery::{Delivery, Handler, Outcome};
use super::in_flight::InFlightGuard;
use crate::metrics::{self, HandlerTimer};

/// Most concurrent handler calls for one batch, each with a part of it.
const CONCURRENT_PARTS: usize = 8;

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
    let parts = part_ranges(deliveries).into_iter().filter_map(|range| deliveries.get(range));
    let calls = parts.map(|part| call(handler, part)).collect::<Vec<_>>();
    let mut outcomes = stream::iter(calls).buffered(CONCURRENT_PARTS).concat().await;
    for ((mut span, outcome), delivery) in spans.into_iter().zip(&mut outcomes).zip(&*deliveries) {
        let is_dead = match outcome {
            Outcome::Retry { .. } => delivery.is_last_attempt,
            Outcome::Reject { .. } => true,
            Outcome::Done | Outcome::Postpone { .. } => false,
        };
        if let Outcome::Retry { reason } | Outcome::Reject { reason } = outcome
            && is_dead
            && let Err(error) = give_up(handler, delivery).await
        {
            *outcome = Outcome::Postpone { reason: format!("{reason}; and it cannot be given up: {error}") };
        }
        // A `Retry` of the last attempt stays one: the bus makes a dead letter of it.
        match outcome {
            Outcome::Done => timer.count_done(),
            Outcome::Retry { .. } | Outcome::Reject { .. } if is_dead => {
                span.fail("it becomes a dead letter");
                metrics::count_dead(queue);
            }
            Outcome::Retry { .. } | Outcome::Reject { .. } | Outcome::Postpone { .. } => {
                span.fail("it is tried again later");
                metrics::count_retried(queue);
            }
        }
    }
    outcomes
}

async fn give_up(handler: &dyn Handler, delivery: &Delivery) -> Result<(), String> {
    let given_up = AssertUnwindSafe(handler.give_up(delivery)).catch_unwind().await;
    given_up.unwrap_or_else(|panic| Err(format!("handler panicked: {}", panic_text(&*panic))))
}

/// Ranges of deliveries that are handled together: without a limit in the first attempt, few in the second, then one.
fn part_ranges(deliveries: &[Delivery]) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut previous_limit = 0;
    for (index, delivery) in deliveries.iter().enumerate() {
        let limit = cut_short::max_batch(delivery.attempt, delivery.times_cut_short);
        match parts.last_mut() {
            Some(part) if limit == previous_limit && part.len() < limit => part.end = index + 1,
            _ => parts.push(index..index + 1),
        }
        previous_limit = limit;
    }
    parts
}

/// One outcome for each delivery. When the handler panics on several deliveries, it is called with each one alone.
async fn call(handler: &dyn Handler, deliveries: &[Delivery]) -> Vec<Outcome> {
    if let [delivery] = deliveries
        && delivery.times_cut_short >= cut_short::GIVE_UP_THRESHOLD
    {
        // It ended with the process or the connection too often: it is given up, not handled again.
        return vec![Outcome::Reject { reason: cut_short::reason(delivery.times_cut_short) }];
    }
    if let Some(outcomes) = try_call(handler, deliveries).await {
        return outcomes;
    }
    let mut outcomes = Vec::with_capacity(deliveries.len());
    for delivery in deliveries {
        let single = std::slice::from_ref(delivery);
        outcomes.extend(try_call(handler, single).await.unwrap_or_default());
    }
    outcomes
}

/// `None` when the handler panicked on several deliveries.
async fn try_call(handler: &dyn Handler, deliveries: &[Delivery]) -> Option<Vec<Outcome>> {
    // `AssertUnwindSafe`: a handler must keep its own state valid when it panics.
    match AssertUnwindSafe(handler.handle(deliveries)).catch_unwind().await {
        Ok(outcomes) if outcomes.len() == deliveries.len() => Some(outcomes),
        Ok(outcomes) => {
            let reason =
                format!("handler answered {} outcomes for {} deliveries", outcomes.len(), deliveries.len());
            tracing::error!(reason, "handler returned a wrong number of outcomes");
            Some(retry_all(deliveries, &reason))
        }
        Err(panic) => {
            let reason = format!("handler panicked: {}", panic_text(&*panic));
            tracing::error!(reason, events = deliveries.len(), "handler panicked");
            (deliveries.len() == 1).then(|| retry_all(deliveries, &reason))
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
