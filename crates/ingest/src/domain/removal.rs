//! Deletion and expiry of conversations.

use assay_contracts::event::{ConversationDeleted, ConversationsExpired, MAX_EXPIRED_TICKETS, TicketFacts};
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::internal::OrganizationRetention;
use assay_contracts::time::Timestamp;
use assay_messaging::{EncodeError, OutgoingEvent};
use assay_platform::runtime::new_id;

/// The deletion of one ticket, with its event.
#[derive(Debug, Clone)]
pub struct TicketDeletion {
    pub organization_id: OrganizationId,
    pub ticket_id: TicketId,
    pub deleted_at: Timestamp,
    pub event: OutgoingEvent,
}

impl TicketDeletion {
    pub fn new(
        organization_id: OrganizationId,
        ticket_id: TicketId,
        deleted_at: Timestamp,
    ) -> Result<Self, EncodeError> {
        let deleted = ConversationDeleted { organization_id, ticket_id, deleted_at };
        let event = OutgoingEvent::new(new_id(), deleted_at, &deleted)?;
        Ok(Self { organization_id, ticket_id, deleted_at, event })
    }
}

/// Which conversations of an organization have expired, and which of their evaluations.
#[derive(Debug, Clone, Copy)]
pub struct RetentionCutoff {
    pub organization_id: OrganizationId,
    /// Conversations with smaller ids have expired.
    pub before: TicketId,
    /// Evaluations of tickets imported since then are kept; `None`: all evaluations.
    evaluations_since: Option<Timestamp>,
    now: Timestamp,
}

impl RetentionCutoff {
    /// The cutoff at `now`; `None` when the organization keeps transcripts forever.
    pub fn of(retention: &OrganizationRetention, now: Timestamp) -> Option<Self> {
        Some(Self {
            organization_id: retention.organization_id,
            before: TicketId::min_at(retention.transcripts.cutoff(now)?),
            evaluations_since: retention.evaluations.cutoff(now),
            now,
        })
    }

    /// The smallest ticket id whose evaluation is kept; `None`: all evaluations are kept.
    pub fn first_with_kept_evaluation(&self) -> Option<TicketId> {
        self.evaluations_since.map(TicketId::min_at)
    }

    /// The events for those of the removed conversations whose evaluations are kept; scoring-worker's maintenance removes the
    /// others by their age. A conversation that has no evaluation can no longer get one: on the event, scoring-worker records its
    /// evaluation as failed.
    pub fn events(&self, removed: Vec<TicketFacts>) -> Result<Vec<OutgoingEvent>, EncodeError> {
        let keeps_evaluation =
            |ticket: &TicketFacts| self.evaluations_since.is_none_or(|since| ticket.imported_at >= since);
        let tickets: Vec<TicketFacts> = removed.into_iter().filter(keeps_evaluation).collect();
        let (organization_id, expired_at) = (self.organization_id, self.now);
        let events = tickets.chunks(MAX_EXPIRED_TICKETS).map(|tickets| {
            let expired = ConversationsExpired { organization_id, tickets: tickets.to_vec(), expired_at };
            OutgoingEvent::new(new_id(), expired_at, &expired)
        });
        events.collect()
    }
}

#[cfg(test)]
mod tests {
    use assay_contracts::retention::RetentionPeriod;
    use assay_contracts::time::DAY_MILLIS;

    use super::*;

    fn removed(days_ago: &[i64], now: Timestamp) -> Vec<TicketFacts> {
        let ticket = |days: &i64| TicketFacts {
            id: new_id(),
            external_id: "T".to_owned(),
            source: "custom".to_owned(),
            source_account_id: None,
            subject: None,
            started_at: now,
            ended_at: now,
            imported_at: now.plus_millis(-days * DAY_MILLIS),
            agents: Vec::new(),
        };
        days_ago.iter().map(ticket).collect()
    }

    fn cutoff(
        transcripts: RetentionPeriod,
        evaluations: RetentionPeriod,
        now: Timestamp,
    ) -> Option<RetentionCutoff> {
        let organization_id = new_id();
        RetentionCutoff::of(
            &OrganizationRetention { organization_id, transcripts, evaluations, files: None },
            now,
        )
    }

    fn listed_tickets(event: &OutgoingEvent) -> usize {
        let envelope: serde_json::Value = serde_json::from_str(event.payload()).unwrap();
        envelope["data"]["tickets"].as_array().unwrap().len()
    }

    #[test]
    fn transcripts_kept_forever_have_no_cutoff() {
        assert!(cutoff(RetentionPeriod::Forever, RetentionPeriod::Days(1), Timestamp::MAX).is_none());
    }

    #[test]
    fn expiry_events_are_chunked_and_list_tickets_with_kept_evaluations() {
        let now = Timestamp::saturating_from_millis(1_000 * DAY_MILLIS);
        let ages = [vec![31; 45], vec![61, 62]].concat();
        // Number of tickets in each event.
        let cases = [
            (RetentionPeriod::Forever, vec![MAX_EXPIRED_TICKETS, MAX_EXPIRED_TICKETS, 7]),
            (RetentionPeriod::Days(60), vec![MAX_EXPIRED_TICKETS, MAX_EXPIRED_TICKETS, 5]),
            (RetentionPeriod::Days(32), vec![MAX_EXPIRED_TICKETS, MAX_EXPIRED_TICKETS, 5]),
            (RetentionPeriod::Days(30), vec![]),
        ];
        for (evaluations, expected) in cases {
            let cutoff = cutoff(RetentionPeriod::Days(30), evaluations, now).unwrap();
            let events = cutoff.events(removed(&ages, now)).unwrap();
            let tickets: Vec<usize> = events.iter().map(listed_tickets).collect();
            assert_eq!(tickets, expected, "{evaluations:?}");
        }
    }
}
