//! The result of reading transcripts.

use std::collections::HashSet;

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::internal::{StoredTranscript, TicketReference, UnreadableTranscript};
use assay_contracts::time::Timestamp;
use assay_platform::db::DatabaseError;

use super::rows::TranscriptRow;

/// Requested tickets by what is stored of them; unknown tickets are in no list.
#[derive(Debug, Default)]
pub struct StoredTranscripts {
    pub transcripts: Vec<StoredTranscript>,
    pub deleted: Vec<TicketReference>,
    pub unreadable: Vec<UnreadableTranscript>,
}

impl StoredTranscripts {
    /// Sorts rows by readability. Rows of other organizations than requested are dropped.
    pub(super) fn from_rows(
        wanted: &[TicketReference],
        rows: Vec<TranscriptRow>,
    ) -> Result<Self, DatabaseError> {
        let wanted: HashSet<&TicketReference> = wanted.iter().collect();
        let mut found = Self::default();
        for row in rows {
            match row.into_transcript()? {
                Ok(transcript) => found.transcripts.push(transcript),
                Err(unreadable) => found.unreadable.push(unreadable),
            }
        }
        let is_wanted = |organization_id: OrganizationId, ticket_id: TicketId| {
            wanted.contains(&TicketReference { organization_id, ticket_id })
        };
        found.transcripts.retain(|row| is_wanted(row.organization_id, row.ticket.id));
        found.unreadable.retain(|row| is_wanted(row.organization_id, row.ticket.id));
        Ok(found)
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
        deletions: &[(OrganizationId, TicketId, Timestamp)],
    ) -> Self {
        let deleted: HashSet<TicketReference> = deletions
            .iter()
            .map(|(organization_id, ticket_id, _)| TicketReference {
                organization_id: *organization_id,
                ticket_id: *ticket_id,
            })
            .collect();
        self.deleted.extend(wanted.iter().filter(|ticket| deleted.contains(ticket)));
        self
    }
}
