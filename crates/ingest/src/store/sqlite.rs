//! SQLite: no partitions, one writer, and one statement for each row: statements are cheap inside the process, and a batch
//! only saves commits.

// The same source as in `postgres.rs`: it takes what differs by database from here, through `super`.
#[path = "sql/mod.rs"]
mod sql;

use std::collections::HashSet;

use assay_contracts::ids::TicketId;
use assay_platform::db::{DatabaseError, StoredId};
use diesel::prelude::*;
use diesel::query_dsl::methods::FilterDsl as _;
use diesel::upsert::excluded;

use self::sql::schema::{conversations, identities, participants};
pub(super) use self::sql::*;
use crate::domain::{Import, Participant};

type Connection = diesel::sqlite::SqliteConnection;
type Id = diesel::sql_types::Text;

/// Claims the identities of sorted imports; returns the tickets whose identity is new. Of equal identities the first wins.
fn claim_identities(tx: &mut Connection, imports: &[&Import]) -> Result<HashSet<TicketId>, DatabaseError> {
    let mut claimed = HashSet::new();
    for import in imports {
        let inserted = diesel::insert_into(identities::table)
            .values((
                identities::organization_id.eq(StoredId::of(import.organization_id)),
                identities::identity_sha256.eq(import.identity.as_bytes().as_slice()),
                identities::ticket_id.eq(StoredId::of(import.ticket_id)),
            ))
            .on_conflict_do_nothing()
            .execute(tx)?;
        if inserted > 0 {
            claimed.insert(import.ticket_id);
        }
    }
    Ok(claimed)
}

fn insert_conversations(tx: &mut Connection, imports: &[&Import]) -> Result<(), DatabaseError> {
    for import in imports {
        diesel::insert_into(conversations::table)
            .values((
                conversations::id.eq(StoredId::of(import.ticket_id)),
                conversations::organization_id.eq(StoredId::of(import.organization_id)),
                conversations::external_id.eq(&import.external_id),
                conversations::source.eq(&import.source),
                conversations::source_account_id.eq(&import.source_account_id),
                conversations::subject.eq(&import.subject),
                conversations::started_at.eq(import.started_at.as_millis()),
                conversations::ended_at.eq(import.ended_at.as_millis()),
                conversations::created_at.eq(import.accepted_at.as_millis()),
                conversations::agents.eq(&import.agents_json),
                conversations::packed.eq(import.messages.as_bytes()),
            ))
            .execute(tx)?;
    }
    Ok(())
}

/// Replaces names by those with a later or equal timestamp. Each identity occurs once in `names`.
fn upsert_names(tx: &mut Connection, names: &[Participant]) -> Result<(), DatabaseError> {
    for named in names {
        diesel::insert_into(participants::table)
            .values((
                participants::organization_id.eq(StoredId::of(named.organization_id)),
                participants::identity_sha256.eq(named.identity.as_slice()),
                participants::source.eq(&named.source),
                participants::source_account_id.eq(&named.source_account_id),
                participants::author_type.eq(named.author_type.as_str()),
                participants::external_id.eq(&named.external_id),
                participants::name.eq(&named.name),
                participants::named_at.eq(named.named_at.as_millis()),
            ))
            .on_conflict((participants::organization_id, participants::identity_sha256))
            .do_update()
            .set((
                participants::name.eq(excluded(participants::name)),
                participants::named_at.eq(excluded(participants::named_at)),
            ))
            .filter(participants::named_at.le(excluded(participants::named_at)))
            .execute(tx)?;
    }
    Ok(())
}
