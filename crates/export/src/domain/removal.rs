//! How rows of the read model go.

use assay_contracts::event::EvaluationDeleted;
use assay_contracts::ids::{EventId, OrganizationId, TicketId};
use assay_contracts::retention::DELETIONS_REMEMBERED_MILLIS;
use assay_contracts::time::Timestamp;

/// A ticket that was deleted, and the event that said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeletedRow {
    /// The event.
    pub event_id: EventId,
    /// The tenant.
    pub organization_id: OrganizationId,
    /// The ticket.
    pub ticket_id: TicketId,
    /// When it was deleted.
    pub deleted_at: Timestamp,
}

impl DeletedRow {
    /// What an event says.
    pub fn of(event_id: EventId, event: &EvaluationDeleted) -> Self {
        let EvaluationDeleted { organization_id, ticket_id, deleted_at } = *event;
        Self { event_id, organization_id, ticket_id, deleted_at }
    }
}

/// Whether an event about an evaluation is so old (a dead letter that somebody found) that it is no longer known whether its
/// ticket was deleted since.
pub fn is_too_old(event_id: EventId, now: Timestamp) -> bool {
    event_id.made_at().is_some_and(|made_at| now.millis_since(made_at) >= DELETIONS_REMEMBERED_MILLIS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_too_old_when_deletions_of_its_time_may_be_forgotten() {
        let millis = 1_763_600_000_000;
        let id = uuid::Builder::from_unix_timestamp_millis(millis, &[7; 10]).into_uuid().into();
        let made_at = Timestamp::saturating_from_millis(millis as i64);
        assert!(!is_too_old(id, made_at));
        assert!(!is_too_old(id, made_at.plus_millis(DELETIONS_REMEMBERED_MILLIS - 1)));
        assert!(is_too_old(id, made_at.plus_millis(DELETIONS_REMEMBERED_MILLIS)));
    }
}
