//! The result of reading transcripts.

use std::collections::HashSet;

use assay_contracts::ids::TicketId;
use assay_contracts::internal::{StoredTranscript, TicketReference, Transcripts};

use super::rows::ConversationRow;

/// Bytes of a transcript in a response, without the names of its fields. Attributes of the ticket are in it twice.
pub fn transcript_bytes(transcript: &StoredTranscript) -> usize {
    let StoredTranscript { ticket, conversation, .. } = transcript;
    let length = |text: &Option<String>| text.as_deref().map_or(0, str::len);
    let attributes = ticket.external_id.len()
        + ticket.source.len()
        + length(&ticket.source_account_id)
        + length(&ticket.subject);
    let agents = ticket.agents.iter().map(|agent| agent.external_id.len() + agent.name.len()).sum::<usize>();
    conversation.messages.get().len() + 2 * attributes + agents
}

/// Decompresses rows until they have `max_bytes` of text; the others are unread. Drops rows of other organizations than
/// requested.
pub(super) fn from_rows(
    wanted: &[TicketReference],
    rows: Vec<ConversationRow>,
    max_bytes: usize,
) -> Transcripts<StoredTranscript> {
    let wanted: HashSet<&TicketReference> = wanted.iter().collect();
    let mut found = Transcripts::default();
    let mut bytes = 0;
    for row in rows {
        let reference = row.reference();
        if !wanted.contains(&reference) {
            continue;
        }
        if bytes >= max_bytes {
            found.unread.push(reference);
            continue;
        }
        match row.into_transcript() {
            Ok(transcript) => {
                bytes += transcript_bytes(&transcript);
                found.transcripts.push(transcript);
            }
            Err(unreadable) => found.unreadable.push(*unreadable),
        }
    }
    found
}

/// Requested tickets that are in no list yet.
pub(super) fn missing(found: &Transcripts<StoredTranscript>, wanted: &[TicketReference]) -> Vec<TicketId> {
    let transcripts = found.transcripts.iter().map(|found| found.ticket.id);
    let unreadable = found.unreadable.iter().map(|found| found.ticket.id);
    let unread = found.unread.iter().map(|ticket| ticket.ticket_id);
    let found: HashSet<TicketId> = transcripts.chain(unreadable).chain(unread).collect();
    wanted.iter().map(|ticket| ticket.ticket_id).filter(|id| !found.contains(id)).collect()
}
