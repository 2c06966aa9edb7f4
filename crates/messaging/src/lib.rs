//! The bus between services, and how nothing that was accepted is lost on it.
//!
//! A producer writes its events into the [`outbox`] in the transaction that makes them true; a relay publishes them
//! on the [`Bus`] and forgets one only when the broker (or, in one process, the consumer) has it. A consumer records
//! the events it handled in its [`inbox`], in the transaction of its work, so that a redelivery changes nothing.
//! Between the two stands RabbitMQ, or nothing at all: producers and consumers cannot tell.

mod backoff;
mod bus;
#[cfg(test)]
mod conformance;
mod envelope;
pub mod inbox;
mod metrics;
pub mod outbox;
mod readiness;
mod settings;
#[cfg(test)]
mod test_databases;

use assay_platform::db::Migrations;

pub use self::bus::{
    Bus, BusError, DeadLetter, DeadLetterDecision, DeadLetterError, DeadLetterReview, Delivery, Handler,
    Outcome, PublishError, Subscription,
};
pub use self::envelope::{DecodeError, EncodeError, OutgoingEvent};
pub use self::readiness::{
    register_backlog_readiness, register_consumer_readiness, register_handling_readiness,
    register_outbox_readiness, register_producer_readiness,
};
pub use self::settings::{BusSettings, RetryDelay};

/// The tables `outbox` and `inbox`. A service that uses them lists these beside its own migrations.
pub const MIGRATIONS: Migrations = Migrations {
    postgres: diesel_migrations::embed_migrations!("migrations/postgres"),
    sqlite: diesel_migrations::embed_migrations!("migrations/sqlite"),
};
