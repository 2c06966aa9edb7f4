//! Writes a batch of imports in a fixed number of statements.
//!
//! Other writers and replicas may claim the same keys. All transactions lock in the same order (idempotency keys,
//! identities, names; each sorted), which prevents deadlocks.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use assay_contracts::conversation::IdentityHash;
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::outbox::{self, DirectDispatch};
use assay_platform::db::idempotency::{self, KeyReuse, Record};
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
    dispatch: DirectDispatch,
) -> Result<Vec<ImportOutcome>, DatabaseError> {
    let reused = claim_keys(connection, imports)?;
    let fresh: Vec<&Import> =
        imports.iter().map(Arc::as_ref).filter(|import| !reused.contains_key(&import.ticket_id)).collect();
    let claimed = claim_identities(connection, &fresh)?;
    let (accepted, duplicates): (Vec<&Import>, Vec<&Import>) =
        fresh.into_iter().partition(|import| claimed.contains(&import.ticket_id));
    let first_tickets = find_first_tickets(connection, &duplicates)?;
    release_keys(connection, &duplicates)?;
    write_accepted(connection, &accepted, dispatch)?;
    imports.iter().map(|import| outcome(import, &reused, &claimed, &first_tickets)).collect()
}

fn outcome(
    import: &Import,
    reused: &HashMap<TicketId, KeyReuse>,
    claimed: &HashSet<TicketId>,
    first_tickets: &HashMap<(Uuid, Vec<u8>), TicketId>,
) -> Result<ImportOutcome, DatabaseError> {
    if let Some(reused) = reused.get(&import.ticket_id) {
        return Ok(ImportOutcome::KeyReused(reused.clone()));
    }
    if claimed.contains(&import.ticket_id) {
        return Ok(ImportOutcome::Accepted);
    }
    let identity = (import.organization_id.as_uuid(), import.identity.as_bytes().to_vec());
    let first = first_tickets.get(&identity).copied();
    first.map(ImportOutcome::Duplicate).ok_or_else(|| {
        DatabaseError::Corrupt("an identity conflicts as a duplicate and cannot be found".to_owned())
    })
}

/// Claims the idempotency keys; returns the reused ones by the ticket id of their import.
fn claim_keys(
    connection: &mut PgConnection,
    imports: &[Arc<Import>],
) -> Result<HashMap<TicketId, KeyReuse>, DatabaseError> {
    let with_key = imports.iter().filter_map(|import| Some((import.ticket_id, import.record.clone()?)));
    let (tickets, records): (Vec<TicketId>, Vec<Record>) = with_key.unzip();
    let now = imports.iter().map(|import| import.accepted_at).max().unwrap_or(Timestamp::MIN);
    let answers = idempotency::store(connection, &records, now)?;
    let used = tickets.into_iter().zip(answers);
    Ok(used.filter_map(|(ticket, reused)| Some((ticket, reused?))).collect())
}

/// Releases the idempotency keys of duplicates: only successful requests are recorded.
fn release_keys(connection: &mut PgConnection, duplicates: &[&Import]) -> Result<(), DatabaseError> {
    let records = duplicates.iter().filter_map(|import| import.record.as_ref());
    let keys: Vec<_> = records.map(|record| (record.organization_id, &record.key)).collect();
    idempotency::delete(connection, &keys)
}

/// Claims the identities; returns the tickets whose identity is new. Among equal identities in a batch the first wins.
fn claim_identities(
    connection: &mut PgConnection,
    imports: &[&Import],
) -> Result<HashSet<TicketId>, DatabaseError> {
    if imports.is_empty() {
        return Ok(HashSet::new());
    }
    let mut sorted: Vec<&Import> = imports.to_vec();
    // A stable sort: equal identities stay in order of arrival.
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

/// The first tickets of the identities of duplicates.
fn find_first_tickets(
    connection: &mut PgConnection,
    duplicates: &[&Import],
) -> Result<HashMap<(Uuid, Vec<u8>), TicketId>, DatabaseError> {
    if duplicates.is_empty() {
        return Ok(HashMap::new());
    }
    let (organizations, hashes) = identity_columns(duplicates);
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
    dispatch: DirectDispatch,
) -> Result<(), DatabaseError> {
    if accepted.is_empty() {
        return Ok(());
    }
    insert_conversations(connection, accepted)?;
    upsert_names(connection, accepted)?;
    let events: Vec<_> = accepted.iter().map(|import| import.event.clone()).collect();
    outbox::enqueue(connection, &events, dispatch)
}

fn insert_conversations(connection: &mut PgConnection, imports: &[&Import]) -> Result<(), DatabaseError> {
    let uuids = |of: fn(&Import) -> Uuid| imports.iter().map(|import| of(import)).collect::<Vec<_>>();
    let texts = |of: fn(&Import) -> &str| imports.iter().map(|import| of(import)).collect::<Vec<_>>();
    let optional =
        |of: fn(&Import) -> Option<&str>| imports.iter().map(|import| of(import)).collect::<Vec<_>>();
    let times = |of: fn(&Import) -> Timestamp| {
        imports.iter().map(|import| of(import).as_millis()).collect::<Vec<_>>()
    };
    let messages: Vec<&[u8]> = imports.iter().map(|import| import.messages.as_bytes()).collect();
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
        .bind::<Array<Binary>, _>(messages)
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
