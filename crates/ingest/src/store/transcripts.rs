//! The result of reading transcripts.

use std::collections::HashSet;

use assay_contracts::ids::TicketId;
use assay_contracts::internal::{StoredTranscript, TicketReference, UnreadableTranscript};
use assay_contracts::time::Timestamp;

use super::rows::ConversationRow;

/// Requested tickets by what is stored of them; unknown tickets are in no list.
#[derive(Debug, Default)]
pub struct StoredTranscripts {
    pub transcripts: Vec<StoredTranscript>,
    pub deleted: Vec<TicketReference>,
    pub unreadable: Vec<UnreadableTranscript>,
}

impl StoredTranscripts {
    /// Sorts rows by readability. Rows of other organizations than requested are dropped.
    pub(super) fn from_rows(wanted: &[TicketReference], rows: Vec<ConversationRow>) -> Self {
        let wanted: HashSet<&TicketReference> = wanted.iter().collect();
        let mut found = Self::default();
        for row in rows {
            let (organization_id, ticket_id) = (row.organization_id.0.into(), row.id.0.into());
            if !wanted.contains(&TicketReference { organization_id, ticket_id }) {
                continue;
            }
            match row.into_transcript() {
                Ok(transcript) => found.transcripts.push(transcript),
                Err(unreadable) => found.unreadable.push(*unreadable),
            }
        }
        found
    }

    /// Requested tickets without a row.
    pub(super) fn missing(&self, wanted: &[TicketReference]) -> Vec<TicketId> {
        let transcripts = self.transcripts.iter().map(|found| found.ticket.id);
        let found: HashSet<TicketId> =
            transcripts.chain(self.unreadable.iter().map(|found| found.ticket.id)).collect();
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
