//! PostgreSQL: conversations are partitioned by month, and a batch of imports is written in one statement for each table.

// The same source as in `sqlite.rs`: it takes what differs by database from here, through `super`.
#[path = "sql/mod.rs"]
#[expect(clippy::duplicate_mod, reason = "the same statements, compiled for both databases")]
mod sql;

use std::collections::HashSet;

use assay_contracts::ids::TicketId;
use assay_contracts::time::Timestamp;
use assay_platform::db::{self, DatabaseError, PartitionedTable, Postgres, StoredId, static_sql};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Nullable, Text};

pub(super) use self::sql::*;
use crate::domain::{Import, Participant};

type Connection = diesel::pg::PgConnection;
type Id = diesel::sql_types::Uuid;

/// Months for which partitions are created ahead: a service that was down for weeks can write at once.
const MONTHS_AHEAD: i32 = 3;

const CONVERSATIONS: PartitionedTable = PartitionedTable { name: "conversations", key: "id" };

const CLAIM_IDENTITIES: &str = "
    INSERT INTO identities (organization_id, identity_sha256, ticket_id)
    SELECT * FROM unnest($1, $2, $3)
    ON CONFLICT (organization_id, identity_sha256) DO NOTHING
    RETURNING ticket_id";

const INSERT_CONVERSATIONS: &str = "
    INSERT INTO conversations (id, organization_id, external_id, source, source_account_id, subject,
                               started_at, ended_at, created_at, agents, packed)
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";

/// Rows that would not change are not written.
const UPSERT_NAMES: &str = "
    INSERT INTO participants (organization_id, identity_sha256, source, source_account_id, author_type,
                              external_id, name, named_at)
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (organization_id, identity_sha256) DO UPDATE
       SET name = excluded.name, named_at = excluded.named_at
     WHERE participants.named_at < excluded.named_at
        OR (participants.named_at = excluded.named_at AND participants.name <> excluded.name)";

#[derive(QueryableByName)]
struct ClaimedRow {
    #[diesel(sql_type = Id)]
    ticket_id: StoredId,
}

pub(super) async fn prepare_partitions(database: &Postgres, now: Timestamp) -> Result<(), DatabaseError> {
    db::prepare_partitions(database, CONVERSATIONS, now).await
}

pub(super) async fn maintain_partitions(database: &Postgres, now: Timestamp) -> Result<(), DatabaseError> {
    db::maintain_partitions(database, CONVERSATIONS, now, MONTHS_AHEAD).await
}

/// Claims the identities of sorted imports; returns the tickets whose identity is new. Of equal identities the first wins.
fn claim_identities(tx: &mut Connection, imports: &[&Import]) -> Result<HashSet<TicketId>, DatabaseError> {
    if imports.is_empty() {
        return Ok(HashSet::new());
    }
    let claimed: Vec<ClaimedRow> = static_sql(CLAIM_IDENTITIES)
        .bind::<Array<Id>, _>(column(imports, |import| StoredId::of(import.organization_id)))
        .bind::<Array<Binary>, _>(column(imports, |import| import.identity.as_bytes().as_slice()))
        .bind::<Array<Id>, _>(column(imports, |import| StoredId::of(import.ticket_id)))
        .load(tx)?;
    Ok(claimed.into_iter().map(|row| row.ticket_id.0.into()).collect())
}

fn insert_conversations(tx: &mut Connection, imports: &[&Import]) -> Result<(), DatabaseError> {
    static_sql(INSERT_CONVERSATIONS)
        .bind::<Array<Id>, _>(column(imports, |import| StoredId::of(import.ticket_id)))
        .bind::<Array<Id>, _>(column(imports, |import| StoredId::of(import.organization_id)))
        .bind::<Array<Text>, _>(column(imports, |import| import.external_id.as_str()))
        .bind::<Array<Text>, _>(column(imports, |import| import.source.as_str()))
        .bind::<Array<Nullable<Text>>, _>(column(imports, |import| import.source_account_id.as_deref()))
        .bind::<Array<Nullable<Text>>, _>(column(imports, |import| import.subject.as_deref()))
        .bind::<Array<BigInt>, _>(column(imports, |import| import.started_at.as_millis()))
        .bind::<Array<BigInt>, _>(column(imports, |import| import.ended_at.as_millis()))
        .bind::<Array<BigInt>, _>(column(imports, |import| import.accepted_at.as_millis()))
        .bind::<Array<Text>, _>(column(imports, |import| import.agents_json.as_str()))
        .bind::<Array<Binary>, _>(column(imports, |import| import.messages.as_bytes()))
        .execute(tx)?;
    Ok(())
}

/// Replaces names by those with a later or equal timestamp. Each identity occurs once in `names`.
fn upsert_names(tx: &mut Connection, names: &[Participant]) -> Result<(), DatabaseError> {
    if names.is_empty() {
        return Ok(());
    }
    let names: Vec<&Participant> = names.iter().collect();
    static_sql(UPSERT_NAMES)
        .bind::<Array<Id>, _>(column(&names, |named| StoredId::of(named.organization_id)))
        .bind::<Array<Binary>, _>(column(&names, |named| named.identity.as_slice()))
        .bind::<Array<Text>, _>(column(&names, |named| named.source.as_str()))
        .bind::<Array<Nullable<Text>>, _>(column(&names, |named| named.source_account_id.as_deref()))
        .bind::<Array<Text>, _>(column(&names, |named| named.author_type.as_str()))
        .bind::<Array<Text>, _>(column(&names, |named| named.external_id.as_str()))
        .bind::<Array<Text>, _>(column(&names, |named| named.name.as_str()))
        .bind::<Array<BigInt>, _>(column(&names, |named| named.named_at.as_millis()))
        .execute(tx)?;
    Ok(())
}

/// The values of one column.
fn column<'r, R, V>(rows: &[&'r R], value: impl Fn(&'r R) -> V) -> Vec<V> {
    rows.iter().map(|row| value(row)).collect()
}
