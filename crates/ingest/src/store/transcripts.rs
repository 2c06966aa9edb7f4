//! The result of reading transcripts.

use std::collections::HashSet;

use assay_contracts::ids::TicketId;
use assay_contracts::internal::{StoredTranscript, TicketReference, UnreadableTranscript};
use assay_contracts::time::Timestamp;

use super::rows::ConversationRow;

/// The requested tickets, by the state of their transcripts; unknown tickets are in no list.
#[derive(Debug, Default)]
pub struct StoredTranscripts {
    pub transcripts: Vec<StoredTranscript>,
    pub deleted: Vec<TicketReference>,
    pub unreadable: Vec<UnreadableTranscript>,
    /// Not read, because the byte limit was reached before.
    pub unread: Vec<TicketReference>,
}

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

impl StoredTranscripts {
    /// Decompresses rows until they have `max_bytes` of text; the others are unread. Drops rows of other organizations than
    /// requested.
    pub(super) fn from_rows(
        wanted: &[TicketReference],
        rows: Vec<ConversationRow>,
        max_bytes: usize,
    ) -> Self {
        let wanted: HashSet<&TicketReference> = wanted.iter().collect();
        let mut found = Self::default();
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
    pub(super) fn missing(&self, wanted: &[TicketReference]) -> Vec<TicketId> {
        let transcripts = self.transcripts.iter().map(|found| found.ticket.id);
        let unreadable = self.unreadable.iter().map(|found| found.ticket.id);
        let unread = self.unread.iter().map(|ticket| ticket.ticket_id);
        let found: HashSet<TicketId> = transcripts.chain(unreadable).chain(unread).collect();
        wanted.iter().map(|ticket| ticket.ticket_id).filter(|id| !found.contains(id)).collect()
    }

    /// Adds the requested tickets that have a tombstone.
    pub(super) fn with_deletions(
        mut self,
        wanted: &[TicketReference],
        deletions: &[(TicketReference, Timestamp)],
    ) -> Self {
        let deleted: HashSet<&TicketReference> = deletions.iter().map(|(ticket, _)| ticket).collect();
        self.deleted.extend(wanted.iter().filter(|ticket| deleted.contains(ticket)));
        self
    }
}
