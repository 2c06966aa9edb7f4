//! Readiness checks for the bus, the outbox and handlers.
//!
//! A service whose main task is to answer requests works without the bus, because its outbox keeps the events: failed
//! checks only degrade it. While its backlog is at its limit it refuses the requests that write events. A worker
//! (scoring-worker, export-worker) is not ready without the bus, while a handler is stuck, or while an event waits too
//! long in its outbox.

use std::future::{Ready, ready};
use std::time::Duration;

use assay_platform::runtime::{Readiness, now};

use crate::bus::Bus;
use crate::outbox::{Backlog, Outbox};

/// Adds the checks `<name> bus` and `<name> outbox` for a service that serves requests: connected, and no pending event
/// older than `max_age`. While one fails the service is degraded.
pub fn register_producer_readiness(
    readiness: &Readiness,
    name: &str,
    bus: &Bus,
    outbox: &Outbox,
    max_age: Duration,
) {
    let bus = bus.clone();
    readiness.register_degrading(format!("{name} bus"), move || ping(bus.clone()));
    let outbox = outbox.clone();
    readiness.register_degrading(format!("{name} outbox"), move || check_age(outbox.clone(), max_age));
}

/// Adds the check `<name> outbox limit`: the backlog is below its limits. While it fails the service is degraded: it
/// refuses requests that would write events, and answers all others.
pub fn register_backlog_readiness(readiness: &Readiness, name: &str, backlog: &Backlog) {
    let backlog = backlog.clone();
    readiness.register_degrading(format!("{name} outbox limit"), move || {
        ready(backlog.check().map_err(|reason| reason.to_string()))
    });
}

/// Adds the checks `<name> bus` and `<name> deliveries` for a worker: connected, and no delivery of `queue` in flight
/// for longer than `bus.handling_limit_seconds`. While one fails the worker is not ready. How long messages wait in the
/// queue is not checked: the broker itself reports it.
pub fn register_consumer_readiness(readiness: &Readiness, name: &str, bus: &Bus, queue: &'static str) {
    readiness.register(format!("{name} deliveries"), check_handling(bus, queue));
    let bus = bus.clone();
    readiness.register(format!("{name} bus"), move || ping(bus.clone()));
}

/// Adds the check `<name> parked deliveries` for a worker: no parked event is in flight for longer than
/// `bus.handling_limit_seconds`. `queue` is the name under which the worker handles its parked events. While the check
/// fails the worker is not ready.
pub fn register_parking_readiness(readiness: &Readiness, name: &str, bus: &Bus, queue: &'static str) {
    readiness.register(format!("{name} parked deliveries"), check_handling(bus, queue));
}

/// Adds the check `<name> deliveries` for a service that both serves requests and consumes: no delivery of `queue` in
/// flight for longer than `bus.handling_limit_seconds`. While it fails the service is degraded.
pub fn register_handling_readiness(readiness: &Readiness, name: &str, bus: &Bus, queue: &'static str) {
    readiness.register_degrading(format!("{name} deliveries"), check_handling(bus, queue));
}

/// Adds the check `<name> outbox` for a worker: no pending event older than `max_age`. While it fails the worker is not
/// ready.
pub fn register_outbox_readiness(readiness: &Readiness, name: &str, outbox: &Outbox, max_age: Duration) {
    let outbox = outbox.clone();
    readiness.register(format!("{name} outbox"), move || check_age(outbox.clone(), max_age));
}

async fn ping(bus: Bus) -> Result<(), String> {
    bus.ping().await
}

fn check_handling(bus: &Bus, queue: &'static str) -> impl Fn() -> Ready<Result<(), String>> + use<> {
    let bus = bus.clone();
    move || ready(bus.check_handling(queue))
}

async fn check_age(outbox: Outbox, max_age: Duration) -> Result<(), String> {
    let oldest = outbox.oldest_unpublished().await.map_err(|error| error.to_string())?;
    let max_age = i64::try_from(max_age.as_millis()).unwrap_or(i64::MAX);
    match oldest.map(|oldest| now().millis_since(oldest)) {
        Some(age) if age > max_age => Err(format!("an event has been waiting for {age} ms")),
        _ => Ok(()),
    }
}
