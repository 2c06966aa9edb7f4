//! Support for the tests with an outbox: relays, and every combination of a database and a bus.

use anyhow::Result;
use assay_messaging::outbox::{Connection as _, FastPathClaim, Outbox, relay};
use assay_messaging::{Bus, MIGRATIONS, OutgoingEvent};
use assay_platform::db::{Database, DatabaseError, Migrations};
use assay_testkit::{ServiceDatabase, write_on};
use tokio_util::sync::CancellationToken;

use super::Running;

pub static TABLES: [Migrations; 1] = [MIGRATIONS];
/// The schema of a service, that of any will do.
pub const SCHEMA: &str = "ingest";

/// Makes a test of each named function for each combination of a database and a bus.
macro_rules! on_every_stack {
    ($($check:ident),+ $(,)?) => {
        on_every_stack!(@ postgres_and_rabbit, postgres, rabbit_bus()?, $($check),+);
        on_every_stack!(@ postgres_and_local_bus, postgres, local_bus(), $($check),+);
        on_every_stack!(@ sqlite_and_rabbit, sqlite, rabbit_bus()?, $($check),+);
        on_every_stack!(@ sqlite_and_local_bus, sqlite, local_bus(), $($check),+);
    };
    (@ $stack:ident, $database:ident, $bus:expr, $($check:ident),+) => {
        mod $stack {
            use super::*;
            $(#[tokio::test]
            async fn $check() -> anyhow::Result<()> {
                use crate::support::relaying::{SCHEMA, TABLES};
                let database = assay_testkit::ServiceDatabase::$database(SCHEMA, &TABLES).await?;
                super::$check(database.open(SCHEMA)?, $bus).await
            })+
        }
    };
}

/// A migrated SQLite database, with what removes it when dropped.
pub async fn sqlite_database() -> Result<(ServiceDatabase, Database)> {
    let kept = ServiceDatabase::sqlite(SCHEMA, &TABLES).await?;
    let database = kept.open(SCHEMA)?;
    Ok((kept, database))
}

pub fn start_relay(outbox: &Outbox, bus: &Bus) -> Running {
    let (outbox, bus) = (outbox.clone(), bus.clone());
    Running::start(|stop| relay(outbox, bus, stop))
}

/// Runs a relay whose stop is already requested: only its final flush.
pub async fn run_stopped_relay(outbox: &Outbox, bus: &Bus) {
    let stopped = CancellationToken::new();
    stopped.cancel();
    relay(outbox.clone(), bus.clone(), stopped).await;
}

pub async fn enqueue(database: &Database, events: &[OutgoingEvent]) -> Result<(), DatabaseError> {
    enqueue_with_claim(database, events, FastPathClaim::NONE).await
}

pub async fn enqueue_with_claim(
    database: &Database,
    events: &[OutgoingEvent],
    claim: FastPathClaim,
) -> Result<(), DatabaseError> {
    let events = events.to_vec();
    write_on!(database, |connection| connection.enqueue_events(&events, claim))
}
