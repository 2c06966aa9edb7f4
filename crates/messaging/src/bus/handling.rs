//! Calling a handler without trusting it: it may panic or miscount.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

use super::delivery::{Delivery, Handler, Outcome};
use super::in_hand::Handling;

/// The handler's outcomes, one for each delivery whatever it does.
pub(super) async fn handle(
    handler: &dyn Handler,
    deliveries: &[Delivery],
    _in_hand: Handling,
) -> Vec<Outcome> {
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
