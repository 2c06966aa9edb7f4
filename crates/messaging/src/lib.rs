//! Messaging between services without lost events: transactional outbox, bus, inbox.
//!
//! A producer writes its events into the [`outbox`] in the transaction that makes them true. A relay publishes them on
//! the [`Bus`] and deletes a row only when the broker (or, in one process, the consumer) has confirmed the event. A
//! consumer records handled events in its [`inbox`], in the transaction of its work, so that a redelivery changes nothing.
//! The bus is RabbitMQ or runs inside the process; producers and consumers are the same on both.

#![warn(missing_docs)]
// Shared code has parts that only RabbitMQ uses; a build with both buses reports code that nothing uses.
#![cfg_attr(not(feature = "distributed"), allow(dead_code))]

mod backoff;
mod bus;
mod envelope;
pub mod inbox;
mod lease;
mod metrics;
pub mod outbox;
pub mod parking;
mod readiness;
mod settings;
#[cfg(test)]
mod test_tables;

use assay_platform::db::Migrations;

pub use self::bus::{
    BatchHandler, Bus, BusError, DeadLetter, DeadLetterDecision, DeadLetterError, DeadLetterReview, Delivery,
    Handler, Outcome, PublishError, Subscription, all_or_each,
};
pub use self::envelope::{DecodeError, EncodeError, OutgoingEvent};
pub use self::readiness::{
    register_backlog_readiness, register_consumer_readiness, register_handling_readiness,
    register_outbox_readiness, register_parking_readiness, register_producer_readiness,
};
pub use self::settings::{BusSettings, RetryDelay};

/// Migrations of the tables `outbox`, `inbox` and `parked`. A service that uses them lists these with its migrations.
pub const MIGRATIONS: Migrations = Migrations {
    postgres: diesel_migrations::embed_migrations!("migrations/postgres"),
    sqlite: diesel_migrations::embed_migrations!("migrations/sqlite"),
};
