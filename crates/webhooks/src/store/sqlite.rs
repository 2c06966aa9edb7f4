//! SQLite: one writer at a time, so there is nothing to lock. Ids are text.

use assay_contracts::ids::{OrganizationId, WebhookId};
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, StoredId};
use diesel::prelude::*;

use self::sql::endpoints::find as find_for_update;
use self::sql::sending::due_messages;

pub(super) use self::sql::*;

// The same source as in `postgres.rs`: it takes what differs by database from here, through `super`.
#[path = "sql/mod.rs"]
#[cfg_attr(
    feature = "distributed",
    expect(clippy::duplicate_mod, reason = "the same statements, compiled for both databases")
)]
mod sql;

type Connection = diesel::sqlite::SqliteConnection;
type Id = diesel::sql_types::Text;

fn lock_creation(_: &mut Connection, _: OrganizationId) -> Result<(), DatabaseError> {
    Ok(())
}

fn lock_due_messages(
    connection: &mut Connection,
    endpoint_id: WebhookId,
    now: Timestamp,
    limit: i64,
) -> QueryResult<Vec<StoredId>> {
    due_messages(StoredId::of(endpoint_id), now.as_millis(), limit).load(connection)
}
