//! Writes a batch of imports. On PostgreSQL the number of statements does not depend on the number of accepted imports.
//!
//! Other writers and replicas may claim the same keys. All transactions lock in the same order (idempotency keys,
//! identities, names; each sorted), which prevents deadlocks.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::outbox::{Connection as _, FastPathClaim};
use assay_platform::db::idempotency::{Connection as _, KeyReuse, Record};
use assay_platform::db::{DatabaseError, StoredId};
use diesel::prelude::*;
use uuid::Uuid;

use super::super::{Connection, claim_identities, insert_conversations, upsert_names};
use super::schema::identities;
use crate::domain::{Import, ImportOutcome, latest_names};

/// Organization and hash of an identity.
type Identity = (Uuid, Vec<u8>);

pub fn accept_batch(
    tx: &mut Connection,
    imports: &[Arc<Import>],
    claim: FastPathClaim,
) -> Result<Vec<ImportOutcome>, DatabaseError> {
    let reused = claim_keys(tx, imports)?;
    let mut fresh: Vec<&Import> =
        imports.iter().map(Arc::as_ref).filter(|import| !reused.contains_key(&import.ticket_id)).collect();
    // A stable sort: of equal identities, the first to arrive wins.
    fresh.sort_by_key(|import| (import.organization_id, import.identity));
    let claimed = claim_identities(tx, &fresh)?;
    let (accepted, duplicates): (Vec<&Import>, Vec<&Import>) =
        fresh.into_iter().partition(|import| claimed.contains(&import.ticket_id));
    let first_tickets = find_first_tickets(tx, &duplicates)?;
    release_keys(tx, &duplicates)?;
    write_accepted(tx, &accepted, claim)?;
    imports.iter().map(|import| outcome(import, &reused, &claimed, &first_tickets)).collect()
}

fn outcome(
    import: &Import,
    reused: &HashMap<TicketId, KeyReuse>,
    claimed: &HashSet<TicketId>,
    first_tickets: &HashMap<Identity, TicketId>,
) -> Result<ImportOutcome, DatabaseError> {
    if let Some(reused) = reused.get(&import.ticket_id) {
        return Ok(ImportOutcome::KeyReused(reused.clone()));
    }
    if claimed.contains(&import.ticket_id) {
        return Ok(ImportOutcome::Accepted);
    }
    let identity = (import.organization_id.as_uuid(), import.identity.as_bytes().to_vec());
    let first = first_tickets.get(&identity).copied();
    first
        .map(ImportOutcome::Duplicate)
        .ok_or_else(|| DatabaseError::Corrupt("a duplicate's identity cannot be found".to_owned()))
}

/// Claims the idempotency keys; returns the reused ones by the ticket id of their import.
fn claim_keys(
    tx: &mut Connection,
    imports: &[Arc<Import>],
) -> Result<HashMap<TicketId, KeyReuse>, DatabaseError> {
    let with_key = imports.iter().filter_map(|import| Some((import.ticket_id, import.record.clone()?)));
    let (tickets, records): (Vec<TicketId>, Vec<Record>) = with_key.unzip();
    let now = imports.iter().map(|import| import.accepted_at).max().unwrap_or(Timestamp::MIN);
    let uses = tickets.into_iter().zip(tx.store_keys(&records, now)?);
    Ok(uses.filter_map(|(ticket, reused)| Some((ticket, reused?))).collect())
}

/// Releases the idempotency keys of duplicates: only successful requests are recorded.
fn release_keys(tx: &mut Connection, duplicates: &[&Import]) -> Result<(), DatabaseError> {
    let records = duplicates.iter().filter_map(|import| import.record.as_ref());
    let keys: Vec<_> = records.map(|record| (record.organization_id, &record.key)).collect();
    tx.delete_keys(&keys)
}

/// The first tickets of the identities of duplicates.
fn find_first_tickets(
    tx: &mut Connection,
    duplicates: &[&Import],
) -> Result<HashMap<Identity, TicketId>, DatabaseError> {
    let mut organizations: BTreeMap<OrganizationId, Vec<&[u8]>> = BTreeMap::new();
    for import in duplicates {
        organizations.entry(import.organization_id).or_default().push(import.identity.as_bytes());
    }
    let mut first_tickets = HashMap::new();
    for (organization_id, hashes) in organizations {
        let rows: Vec<(StoredId, Vec<u8>, StoredId)> = identities::table
            .filter(identities::organization_id.eq(StoredId::of(organization_id)))
            .filter(identities::identity_sha256.eq_any(hashes))
            .load(tx)?;
        first_tickets.extend(
            rows.into_iter().map(|(organization, hash, ticket)| ((organization.0, hash), ticket.0.into())),
        );
    }
    Ok(first_tickets)
}

fn write_accepted(
    tx: &mut Connection,
    accepted: &[&Import],
    claim: FastPathClaim,
) -> Result<(), DatabaseError> {
    if accepted.is_empty() {
        return Ok(());
    }
    insert_conversations(tx, accepted)?;
    let names = latest_names(accepted.iter().flat_map(|import| import.participants.iter().cloned()));
    upsert_names(tx, &names)?;
    let events: Vec<_> = accepted.iter().map(|import| import.event.clone()).collect();
    tx.enqueue_events(&events, claim)
}
