//! Writes a batch of imports in a few statements, whatever its size.
//!
//! Transactions of other writers and replicas may hold the same keys. Each claims in the same order (idempotency keys,
//! identities, names; each of them sorted), so that transactions wait for each other and never in a circle.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use assay_contracts::conversation::IdentityHash;
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::outbox::{self, Handover};
use assay_platform::db::idempotency::{Earlier, Record, forget_postgres, store_postgres};
use assay_platform::db::{DatabaseError, static_sql};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Nullable, Text, Uuid as SqlUuid};
use uuid::Uuid;

use super::participants::upsert_names;
use crate::domain::{Import, ImportOutcome};

const CLAIM_IDENTITIES: &str = "
    INSERT INTO identities (organization_id, identity_sha256, ticket_id)
    SELECT * FROM unnest($1, $2, $3)
    ON CONFLICT (organization_id, identity_sha256) DO NOTHING
    RETURNING ticket_id";

const FIND_IDENTITIES: &str = "
    SELECT organization_id, identity_sha256, ticket_id FROM identities
    WHERE (organization_id, identity_sha256) IN (SELECT * FROM unnest($1, $2))";

const INSERT_CONVERSATIONS: &str = "
    INSERT INTO conversations (id, organization_id, external_id, source, source_account_id, subject,
                               started_at, ended_at, created_at, agents, messages, packed)
    SELECT id, organization_id, external_id, source, source_account_id, subject,
           started_at, ended_at, created_at, agents::jsonb, 'null'::jsonb, packed
    FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         AS new (id, organization_id, external_id, source, source_account_id, subject,
                 started_at, ended_at, created_at, agents, packed)";

type Identity = (OrganizationId, IdentityHash);

#[derive(QueryableByName)]
struct ClaimedRow {
    #[diesel(sql_type = SqlUuid)]
    ticket_id: Uuid,
}

#[derive(QueryableByName)]
struct IdentityRow {
    #[diesel(sql_type = SqlUuid)]
    organization_id: Uuid,
    #[diesel(sql_type = Binary)]
    identity_sha256: Vec<u8>,
    #[diesel(sql_type = SqlUuid)]
    ticket_id: Uuid,
}

pub(super) fn accept_batch(
    connection: &mut PgConnection,
    imports: &[Arc<Import>],
    handover: Handover,
) -> Result<Vec<ImportOutcome>, DatabaseError> {
    let earlier = claim_keys(connection, imports)?;
    let fresh: Vec<&Import> =
        imports.iter().map(Arc::as_ref).filter(|import| !earlier.contains_key(&import.ticket_id)).collect();
    let claimed = claim_identities(connection, &fresh)?;
    let (accepted, refused): (Vec<&Import>, Vec<&Import>) =
        fresh.into_iter().partition(|import| claimed.contains(&import.ticket_id));
    let first_tickets = find_first_tickets(connection, &refused)?;
    release_keys(connection, &refused)?;
    write_accepted(connection, &accepted, handover)?;
    imports.iter().map(|import| outcome(import, &earlier, &claimed, &first_tickets)).collect()
}

fn outcome(
    import: &Import,
    earlier: &HashMap<TicketId, Earlier>,
    claimed: &HashSet<TicketId>,
    first_tickets: &HashMap<(Uuid, Vec<u8>), TicketId>,
) -> Result<ImportOutcome, DatabaseError> {
    if let Some(earlier) = earlier.get(&import.ticket_id) {
        return Ok(ImportOutcome::Earlier(earlier.clone()));
    }
    if claimed.contains(&import.ticket_id) {
        return Ok(ImportOutcome::Accepted);
    }
    let identity = (import.organization_id.as_uuid(), import.identity.as_bytes().to_vec());
    let first = first_tickets.get(&identity).copied();
    first.map(ImportOutcome::Duplicate).ok_or_else(|| {
        DatabaseError::Corrupt("an identity was refused as a duplicate and cannot be found".to_owned())
    })
}

/// Claims the idempotency keys, and answers which were used before, by the ticket that an import would have become.
fn claim_keys(
    connection: &mut PgConnection,
    imports: &[Arc<Import>],
) -> Result<HashMap<TicketId, Earlier>, DatabaseError> {
    let with_key = imports.iter().filter_map(|import| Some((import.ticket_id, import.record.clone()?)));
    let (tickets, records): (Vec<TicketId>, Vec<Record>) = with_key.unzip();
    let now = imports.iter().map(|import| import.accepted_at).max().unwrap_or(Timestamp::MIN);
    let answers = store_postgres(connection, &records, now)?;
    let used = tickets.into_iter().zip(answers);
    Ok(used.filter_map(|(ticket, earlier)| Some((ticket, earlier?))).collect())
}

/// Gives back the keys of imports that turned out to be duplicates: only successes are kept.
fn release_keys(connection: &mut PgConnection, refused: &[&Import]) -> Result<(), DatabaseError> {
    let records = refused.iter().filter_map(|import| import.record.as_ref());
    let keys: Vec<_> = records.map(|record| (record.organization_id, &record.key)).collect();
    forget_postgres(connection, &keys)
}

/// Answers the tickets whose identity is new. Of equal identities in one batch the first import's is.
fn claim_identities(
    connection: &mut PgConnection,
    imports: &[&Import],
) -> Result<HashSet<TicketId>, DatabaseError> {
    if imports.is_empty() {
        return Ok(HashSet::new());
    }
    let mut sorted: Vec<&Import> = imports.to_vec();
    // Stable: equal identities stay in the order of their arrival.
    sorted.sort_by_key(|import| identity(import));
    let (organizations, hashes) = identity_columns(&sorted);
    let tickets: Vec<Uuid> = sorted.iter().map(|import| import.ticket_id.as_uuid()).collect();
    let claimed: Vec<ClaimedRow> = static_sql(CLAIM_IDENTITIES)
        .bind::<Array<SqlUuid>, _>(organizations)
        .bind::<Array<Binary>, _>(hashes)
        .bind::<Array<SqlUuid>, _>(tickets)
        .load(connection)?;
    Ok(claimed.into_iter().map(|row| row.ticket_id.into()).collect())
}

/// The tickets that hold the identities of refused imports.
fn find_first_tickets(
    connection: &mut PgConnection,
    refused: &[&Import],
) -> Result<HashMap<(Uuid, Vec<u8>), TicketId>, DatabaseError> {
    if refused.is_empty() {
        return Ok(HashMap::new());
    }
    let (organizations, hashes) = identity_columns(refused);
    let rows: Vec<IdentityRow> = static_sql(FIND_IDENTITIES)
        .bind::<Array<SqlUuid>, _>(organizations)
        .bind::<Array<Binary>, _>(hashes)
        .load(connection)?;
    let found = rows.into_iter().map(|row| {
        let identity = (row.organization_id, row.identity_sha256);
        (identity, row.ticket_id.into())
    });
    Ok(found.collect())
}

fn write_accepted(
    connection: &mut PgConnection,
    accepted: &[&Import],
    handover: Handover,
) -> Result<(), DatabaseError> {
    if accepted.is_empty() {
        return Ok(());
    }
    insert_conversations(connection, accepted)?;
    upsert_names(connection, accepted)?;
    let events: Vec<_> = accepted.iter().map(|import| import.event.clone()).collect();
    outbox::enqueue_postgres(connection, &events, handover)
}

fn insert_conversations(connection: &mut PgConnection, imports: &[&Import]) -> Result<(), DatabaseError> {
    let uuids = |of: fn(&Import) -> Uuid| imports.iter().map(|import| of(import)).collect::<Vec<_>>();
    let texts = |of: fn(&Import) -> &str| imports.iter().map(|import| of(import)).collect::<Vec<_>>();
    let optional =
        |of: fn(&Import) -> Option<&str>| imports.iter().map(|import| of(import)).collect::<Vec<_>>();
    let times = |of: fn(&Import) -> Timestamp| {
        imports.iter().map(|import| of(import).as_millis()).collect::<Vec<_>>()
    };
    let packed: Vec<&[u8]> = imports.iter().map(|import| import.messages.as_bytes()).collect();
    static_sql(INSERT_CONVERSATIONS)
        .bind::<Array<SqlUuid>, _>(uuids(|import| import.ticket_id.as_uuid()))
        .bind::<Array<SqlUuid>, _>(uuids(|import| import.organization_id.as_uuid()))
        .bind::<Array<Text>, _>(texts(|import| &import.external_id))
        .bind::<Array<Text>, _>(texts(|import| &import.source))
        .bind::<Array<Nullable<Text>>, _>(optional(|import| import.source_account_id.as_deref()))
        .bind::<Array<Nullable<Text>>, _>(optional(|import| import.subject.as_deref()))
        .bind::<Array<BigInt>, _>(times(|import| import.started_at))
        .bind::<Array<BigInt>, _>(times(|import| import.ended_at))
        .bind::<Array<BigInt>, _>(times(|import| import.accepted_at))
        .bind::<Array<Text>, _>(texts(|import| &import.agents_json))
        .bind::<Array<Binary>, _>(packed)
        .execute(connection)?;
    Ok(())
}

fn identity(import: &Import) -> Identity {
    (import.organization_id, import.identity)
}

fn identity_columns<'i>(imports: &[&'i Import]) -> (Vec<Uuid>, Vec<&'i [u8]>) {
    imports
        .iter()
        .map(|import| (import.organization_id.as_uuid(), import.identity.as_bytes().as_slice()))
        .unzip()
}
