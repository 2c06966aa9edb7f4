//! What tests of the relay and of handing over share: every pair of a database and a bus, and relays over an outbox.

use anyhow::Result;
use assay_messaging::outbox::{Handover, Outbox, enqueue_postgres, enqueue_sqlite, relay};
use assay_messaging::{Bus, MIGRATIONS, OutgoingEvent};
use assay_platform::db::{Database, DatabaseError, Migrations};
use tokio_util::sync::CancellationToken;

use crate::support::Running;

pub static TABLES: [Migrations; 1] = [MIGRATIONS];

/// Runs each of the named checks on each pair of a database and a bus.
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
                let fresh = test_databases::$database(&TABLES).await?;
                super::$check(fresh.database.clone(), $bus).await
            })+
        }
    };
}

pub fn start_relay(outbox: &Outbox, bus: &Bus) -> Running {
    let (outbox, bus) = (outbox.clone(), bus.clone());
    Running::start(|stop| relay(outbox, bus, stop))
}

/// A relay that finds itself stopped when it starts: its last flush and nothing else.
pub async fn run_stopped_relay(outbox: &Outbox, bus: &Bus) -> Result<()> {
    let stopped = CancellationToken::new();
    stopped.cancel();
    relay(outbox.clone(), bus.clone(), stopped).await.map_err(anyhow::Error::from_boxed)
}

pub async fn enqueue(database: &Database, events: &[OutgoingEvent]) -> Result<(), DatabaseError> {
    enqueue_for(database, events, Handover::NONE).await
}

pub async fn enqueue_for(
    database: &Database,
    events: &[OutgoingEvent],
    handover: Handover,
) -> Result<(), DatabaseError> {
    let events = events.to_vec();
    match database {
        Database::Postgres(postgres) => {
            postgres.run(move |connection| enqueue_postgres(connection, &events, handover)).await
        }
        Database::Sqlite(sqlite) => {
            sqlite.write(move |connection| enqueue_sqlite(connection, &events, handover)).await
        }
    }
}
