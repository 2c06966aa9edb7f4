//! SQLite: ids are text, and there is one writer at a time.

use assay_platform::db::DatabaseError;

use crate::domain::OrganizationName;

pub(super) type Connection = diesel::sqlite::SqliteConnection;
type Id = diesel::sql_types::Text;

// The same source as in `postgres.rs`: it takes what differs by database from here, through `super`.
#[path = "sql/mod.rs"]
#[cfg_attr(
    feature = "distributed",
    expect(clippy::duplicate_mod, reason = "the same statements, compiled for both databases")
)]
mod sql;
pub(super) use self::sql::*;

/// The write transaction is the lock.
#[expect(clippy::unnecessary_wraps, reason = "as for PostgreSQL")]
fn lock_organization(_: &mut Connection, _: &OrganizationName) -> Result<(), DatabaseError> {
    Ok(())
}
