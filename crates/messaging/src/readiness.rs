//! Readiness of a service on the bus: it is connected, and its events get out.

use std::time::Duration;

use assay_platform::runtime::{Readiness, now};

use crate::bus::Bus;
use crate::outbox::Outbox;

/// Adds the checks `<name> bus` and `<name> outbox`: no event may wait to be published for longer than `max_age`.
pub fn register_readiness(
    readiness: &Readiness,
    name: &'static str,
    bus: &Bus,
    outbox: &Outbox,
    max_age: Duration,
) {
    let bus = bus.clone();
    readiness.register(format!("{name} bus"), move || {
        let bus = bus.clone();
        async move { bus.ping().await }
    });
    let outbox = outbox.clone();
    let max_age = i64::try_from(max_age.as_millis()).unwrap_or(i64::MAX);
    readiness.register(format!("{name} outbox"), move || {
        let outbox = outbox.clone();
        async move {
            let oldest = outbox.oldest_unpublished().await.map_err(|error| error.to_string())?;
            match oldest.map(|oldest| now().millis_since(oldest)) {
                Some(age) if age > max_age => Err(format!("an event has been waiting for {age} ms")),
                _ => Ok(()),
            }
        }
    });
}
