//! Readiness of a service on the bus, which differs by what the service does.
//!
//! Who takes requests can go on without the bus, because the outbox holds what would be published: for it the bus and the
//! outbox are shown, and never take it out of service: what it must refuse it refuses by itself. Who only consumes is good for nothing
//! without the bus, or when its handler hangs.

use std::time::Duration;

use assay_platform::runtime::{Readiness, now};

use crate::bus::Bus;
use crate::outbox::{Backlog, Outbox};

/// Adds the checks `<name> bus` and `<name> outbox` of a service that takes requests: connected, and no event waits to be
/// published for longer than `usual_age`. While they do not hold the service is degraded.
pub fn register_producer_readiness(
    readiness: &Readiness,
    name: &str,
    bus: &Bus,
    outbox: &Outbox,
    usual_age: Duration,
) {
    let bus = bus.clone();
    readiness.register_degrading(format!("{name} bus"), move || {
        let bus = bus.clone();
        async move { bus.ping().await }
    });
    let outbox = outbox.clone();
    readiness.register_degrading(format!("{name} outbox"), move || check_age(outbox.clone(), usual_age));
}

/// Adds the check `<name> outbox limit`: more may be written. While it does not hold the service is degraded: it refuses
/// what would add to the outbox by itself, and answers everything else.
pub fn register_backlog_readiness(readiness: &Readiness, name: &str, backlog: &Backlog) {
    let backlog = backlog.clone();
    readiness.register_degrading(format!("{name} outbox limit"), move || {
        let checked = backlog.check().map_err(|reason| reason.to_string());
        async move { checked }
    });
}

/// Adds the checks `<name> bus` and `<name> deliveries` of a service that only consumes: connected, and nothing of
/// `queue` has been in the hands of a handler for longer than `bus.handling_limit_seconds`. While one does not hold the
/// service is not ready. How long messages have waited in the queue itself is for the broker to say.
pub fn register_consumer_readiness(readiness: &Readiness, name: &str, bus: &Bus, queue: &'static str) {
    let pinged = bus.clone();
    readiness.register(format!("{name} bus"), move || {
        let bus = pinged.clone();
        async move { bus.ping().await }
    });
    let bus = bus.clone();
    readiness.register(format!("{name} deliveries"), move || {
        let checked = bus.check_handling(queue);
        async move { checked }
    });
}

/// The check `<name> deliveries` for a service that consumes beside taking requests: shown only.
pub fn register_handling_readiness(readiness: &Readiness, name: &str, bus: &Bus, queue: &'static str) {
    let bus = bus.clone();
    readiness.register_degrading(format!("{name} deliveries"), move || {
        let checked = bus.check_handling(queue);
        async move { checked }
    });
}

/// Adds the check `<name> outbox` of a service that only consumes: no event waits for longer than `usual_age`.
pub fn register_outbox_readiness(readiness: &Readiness, name: &str, outbox: &Outbox, usual_age: Duration) {
    let outbox = outbox.clone();
    readiness.register(format!("{name} outbox"), move || check_age(outbox.clone(), usual_age));
}

async fn check_age(outbox: Outbox, usual_age: Duration) -> Result<(), String> {
    let oldest = outbox.oldest_unpublished().await.map_err(|error| error.to_string())?;
    let usual_age = i64::try_from(usual_age.as_millis()).unwrap_or(i64::MAX);
    match oldest.map(|oldest| now().millis_since(oldest)) {
        Some(age) if age > usual_age => Err(format!("an event has been waiting for {age} ms")),
        _ => Ok(()),
    }
}
