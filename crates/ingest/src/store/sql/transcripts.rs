//! Transcripts of tickets, bounded in bytes before they are read.

use std::collections::{HashMap, HashSet};

use assay_contracts::internal::{StoredTranscript, TicketReference, TicketWithoutTranscript, Transcripts};
use assay_contracts::ticket::MAX_SUBJECT_CHARS;
use assay_platform::db::{DatabaseError, StoredId};
use diesel::prelude::*;
use diesel::sql_types::{Binary, Integer, Nullable, Text};
use uuid::Uuid;

use super::schema::conversations;
use super::{Connection, find_deletions, row_limit};
use crate::store::rows::ConversationRow;
use crate::store::transcripts::{from_rows, missing};

/// Values of `packed_bytes` of [`load_rows`].
const ALL_BYTES: i32 = i32::MAX;
const NO_BYTES: i32 = 0;

#[declare_sql_function]
extern "SQL" {
    fn octet_length(bytes: Binary) -> Integer;
    #[sql_name = "octet_length"]
    fn octet_length_of_text(text: Text) -> Integer;
    #[sql_name = "substr"]
    fn part_of_text(text: Nullable<Text>, from: Integer, count: Integer) -> Nullable<Text>;
    #[sql_name = "substr"]
    fn part_of_bytes(bytes: Binary, from: Integer, count: Integer) -> Binary;
}

pub fn read(
    connection: &mut Connection,
    mut tickets: Vec<TicketReference>,
    max_bytes: usize,
) -> Result<Transcripts<StoredTranscript>, DatabaseError> {
    let sizes = stored_sizes(connection, &tickets)?;
    let unread = tickets.split_off(count_within(&tickets, &sizes, max_bytes));
    let rows = load_rows(connection, &tickets, ALL_BYTES)?;
    let mut found = from_rows(&tickets, rows, max_bytes);
    // Read after the transcripts, so that a ticket deleted in between is reported as deleted.
    let deletions = find_deletions(connection, &missing(&found, &tickets))?;
    let deleted: HashSet<TicketReference> = deletions.into_iter().map(|(ticket, _)| ticket).collect();
    found.deleted.extend(tickets.into_iter().filter(|ticket| deleted.contains(ticket)));
    found.unread.extend(unread);
    Ok(found)
}

pub fn read_facts(
    connection: &mut Connection,
    tickets: &[TicketReference],
) -> Result<Vec<TicketWithoutTranscript>, DatabaseError> {
    let rows = load_rows(connection, tickets, NO_BYTES)?;
    let wanted = rows.into_iter().filter(|row| tickets.contains(&row.reference()));
    Ok(wanted.map(ConversationRow::into_facts).collect())
}

/// The rows of tickets, with the first `packed_bytes` of their compressed messages.
fn load_rows(
    connection: &mut Connection,
    tickets: &[TicketReference],
    packed_bytes: i32,
) -> Result<Vec<ConversationRow>, DatabaseError> {
    let rows = conversations::table
        .filter(conversations::id.eq_any(ids(tickets)))
        .order(conversations::id)
        .limit(row_limit(tickets.len()))
        .select((
            conversations::id,
            conversations::organization_id,
            conversations::external_id,
            conversations::source,
            conversations::source_account_id,
            // One character more shows that the subject must be shortened.
            part_of_text(conversations::subject, 1, MAX_SUBJECT_CHARS as i32 + 1),
            conversations::started_at,
            conversations::ended_at,
            conversations::created_at,
            conversations::agents,
            part_of_bytes(conversations::packed, 1, packed_bytes),
        ))
        .load(connection)?;
    Ok(rows)
}

/// Sizes of the stored transcripts with their agents. PostgreSQL computes a length without reading the value.
fn stored_sizes(
    connection: &mut Connection,
    tickets: &[TicketReference],
) -> Result<HashMap<Uuid, usize>, DatabaseError> {
    let sizes: Vec<(StoredId, i32, i32)> = conversations::table
        .filter(conversations::id.eq_any(ids(tickets)))
        .order(conversations::id)
        .limit(row_limit(tickets.len()))
        .select((
            conversations::id,
            octet_length(conversations::packed),
            octet_length_of_text(conversations::agents),
        ))
        .load(connection)?;
    let size =
        |packed: i32, agents: i32| usize::try_from(packed.saturating_add(agents)).unwrap_or(usize::MAX);
    Ok(sizes.into_iter().map(|(id, packed, agents)| (id.0, size(packed, agents))).collect())
}

/// The number of leading tickets whose transcripts have at most `max_bytes` together; at least one.
fn count_within(tickets: &[TicketReference], sizes: &HashMap<Uuid, usize>, max_bytes: usize) -> usize {
    let mut total = 0_usize;
    let fits = |ticket: &&TicketReference| {
        total = total.saturating_add(sizes.get(&ticket.ticket_id.as_uuid()).copied().unwrap_or(0));
        total <= max_bytes
    };
    tickets.iter().take_while(fits).count().max(1).min(tickets.len())
}

fn ids(tickets: &[TicketReference]) -> Vec<StoredId> {
    tickets.iter().map(|ticket| StoredId::of(ticket.ticket_id)).collect()
}
