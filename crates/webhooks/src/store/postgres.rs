//! PostgreSQL: transactions run concurrently and lock rows. Ids are of the type `uuid`.

use assay_contracts::ids::{OrganizationId, WebhookId};
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, StoredId};
use diesel::prelude::*;
use diesel::sql_types::Text;

use self::sql::endpoints::existing_endpoint;
use self::sql::record::EndpointRecord;
use self::sql::sending::due_messages;
use crate::domain::endpoint::{Endpoint, EndpointReference};

pub(super) use self::sql::*;

// The same source as in `sqlite.rs`: it takes what differs by database from here, through `super`.
#[path = "sql/mod.rs"]
#[expect(clippy::duplicate_mod, reason = "the same statements, compiled for both databases")]
mod sql;

type Connection = diesel::pg::PgConnection;
type Id = diesel::sql_types::Uuid;

/// Serializes the creation of endpoints of an organization: concurrent transactions would not count each other's endpoints
/// and exceed the limit.
fn lock_creation(connection: &mut Connection, organization_id: OrganizationId) -> Result<(), DatabaseError> {
    diesel::sql_query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))")
        .bind::<Text, _>(format!("webhooks of {organization_id}"))
        .execute(connection)?;
    Ok(())
}

/// The endpoint, locked until the end of the transaction.
fn find_for_update(
    connection: &mut Connection,
    endpoint: EndpointReference,
) -> Result<Option<Endpoint>, DatabaseError> {
    let found = existing_endpoint(endpoint)
        .select(EndpointRecord::as_select())
        .for_update()
        .get_result(connection)
        .optional()?;
    Ok(found.map(Endpoint::from))
}

/// The next due messages of an endpoint, locked, without those that another transaction has locked.
fn lock_due_messages(
    connection: &mut Connection,
    endpoint_id: WebhookId,
    now: Timestamp,
    limit: i64,
) -> QueryResult<Vec<StoredId>> {
    due_messages(StoredId::of(endpoint_id), now.as_millis(), limit)
        .for_update()
        .skip_locked()
        .load(connection)
}
