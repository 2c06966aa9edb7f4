//! Deletion of rows of the read model.

use assay_contracts::event::EvaluationDeleted;
use assay_contracts::ids::{EventId, OrganizationId, TicketId};
use assay_contracts::retention::TOMBSTONE_RETENTION_MILLIS;
use assay_contracts::time::Timestamp;

/// A deleted ticket and its event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeletedRow {
    pub event_id: EventId,
    pub organization_id: OrganizationId,
    pub ticket_id: TicketId,
    pub deleted_at: Timestamp,
}

impl DeletedRow {
    pub fn of(event_id: EventId, event: &EvaluationDeleted) -> Self {
        let EvaluationDeleted { organization_id, ticket_id, deleted_at } = *event;
        Self { event_id, organization_id, ticket_id, deleted_at }
    }
}

/// Whether an evaluation event (a retried dead letter) is older than the retention of tombstones: its ticket may have been
/// deleted since.
pub fn is_too_old(event_id: EventId, now: Timestamp) -> bool {
    event_id.created_at().is_some_and(|made_at| now.millis_since(made_at) >= TOMBSTONE_RETENTION_MILLIS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_older_than_tombstone_retention_is_too_old() {
        let millis = 1_763_600_000_000;
        let id = uuid::Builder::from_unix_timestamp_millis(millis, &[7; 10]).into_uuid().into();
        let made_at = Timestamp::saturating_from_millis(millis as i64);
        assert!(!is_too_old(id, made_at));
        assert!(!is_too_old(id, made_at.plus_millis(TOMBSTONE_RETENTION_MILLIS - 1)));
        assert!(is_too_old(id, made_at.plus_millis(TOMBSTONE_RETENTION_MILLIS)));
    }
}
