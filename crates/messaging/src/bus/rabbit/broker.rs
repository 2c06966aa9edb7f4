//! State that publishing, consuming and the review of dead letters share.

use std::sync::atomic::{AtomicUsize, Ordering};

use secrecy::ExposeSecret;

use super::connection::Connector;
use super::names::Names;
use super::publisher::Publisher;
use crate::bus::errors::BusError;
use crate::bus::in_flight::InFlight;
use crate::settings::{BusSettings, RetryDelay};

/// One broker, as all parts of the bus in this process use it.
pub(super) struct Broker {
    pub(super) connector: Connector,
    pub(super) names: Names,
    pub(super) publisher: Publisher,
    pub(super) retries: Retries,
    /// Most events in one message.
    pub(super) events_per_message: usize,
    pub(super) consumers: ConsumerCounts,
    pub(super) in_flight: InFlight,
}

/// When a failed event is tried again, and how often.
pub(super) struct Retries {
    pub(super) delays: Vec<RetryDelay>,
    pub(super) max_attempts: u32,
}

/// Numbers of consumers in this process.
#[derive(Default)]
pub(super) struct ConsumerCounts {
    pub(super) running: AtomicUsize,
    pub(super) connected: AtomicUsize,
}

impl Broker {
    pub(super) fn open(settings: &BusSettings, in_flight: InFlight) -> Result<Self, BusError> {
        let connector = Connector::parse(settings.url.expose_secret())?;
        let names = Names::parse(&settings.namespace)?;
        let publisher = Publisher::new(connector.clone(), names.clone());
        let retries = Retries { delays: settings.retry_delays.clone(), max_attempts: settings.max_attempts };
        let events_per_message = usize::from(settings.events_per_message);
        let consumers = ConsumerCounts::default();
        Ok(Self { connector, names, publisher, retries, events_per_message, consumers, in_flight })
    }
}

/// Adds one to a counter until it is dropped.
pub(super) struct CountGuard<'c>(&'c AtomicUsize);

impl<'c> CountGuard<'c> {
    pub(super) fn new(counter: &'c AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::SeqCst);
        Self(counter)
    }
}

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
