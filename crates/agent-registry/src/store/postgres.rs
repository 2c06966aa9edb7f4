//! PostgreSQL: ids are `uuid`, and writers run concurrently, so that changes of an organization need a lock.

use assay_platform::db::DatabaseError;
use diesel::prelude::*;

use crate::domain::OrganizationName;

pub(super) type Connection = diesel::pg::PgConnection;
type Id = diesel::sql_types::Uuid;

// The same source as in `sqlite.rs`: it takes what differs by database from here, through `super`.
#[path = "sql/mod.rs"]
#[expect(clippy::duplicate_mod, reason = "the same statements, compiled for both databases")]
mod sql;
pub(super) use self::sql::*;

/// Serializes concurrent changes of an organization until the end of the transaction.
fn lock_organization(connection: &mut Connection, name: &OrganizationName) -> Result<(), DatabaseError> {
    use self::sql::schema::organizations;
    let organization = organizations::table.filter(organizations::name.eq(name.as_str()));
    organization.select(organizations::name).for_update().execute(connection)?;
    Ok(())
}
