//! How conversations go: one is deleted, or many have become too old.

use assay_contracts::event::{ConversationDeleted, ConversationsExpired, MAX_EXPIRED_TICKETS, TicketFacts};
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::internal::OrganizationRetention;
use assay_contracts::time::Timestamp;
use assay_messaging::{EncodeError, OutgoingEvent};
use assay_platform::runtime::new_id;

/// A ticket that is to be deleted, and the event that tells of it.
#[derive(Debug, Clone)]
pub struct TicketDeletion {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// The ticket.
    pub ticket_id: TicketId,
    /// Now.
    pub deleted_at: Timestamp,
    /// The event.
    pub event: OutgoingEvent,
}

impl TicketDeletion {
    /// Prepares a deletion.
    ///
    /// # Errors
    /// When its event cannot be written as JSON.
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

/// The conversations of an organization that are older than its period.
#[derive(Debug, Clone, Copy)]
pub struct Expiry {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// Conversations whose ids lie before this one.
    pub before: TicketId,
    /// Evaluations of tickets imported since then are kept; `None`: all of them are.
    evaluations_since: Option<Timestamp>,
    now: Timestamp,
}

impl Expiry {
    /// What an organization does not keep at `now`; `None` when it keeps everything.
    pub fn of(retention: &OrganizationRetention, now: Timestamp) -> Option<Self> {
        Some(Self {
            organization_id: retention.organization_id,
            before: TicketId::first_at(retention.transcripts.kept_since(now)?),
            evaluations_since: retention.evaluations.kept_since(now),
            now,
        })
    }

    /// The first ticket whose evaluation may be kept; `None`: all of them are.
    pub fn first_evaluated(&self) -> Option<TicketId> {
        self.evaluations_since.map(TicketId::first_at)
    }

    /// The events that tell of conversations that are removed: those whose evaluations would be kept, because one that was
    /// never evaluated has failed now.
    ///
    /// # Errors
    /// When one cannot be written as JSON.
    pub fn events(&self, removed: Vec<TicketFacts>) -> Result<Vec<OutgoingEvent>, EncodeError> {
        let has_evaluation =
            |ticket: &TicketFacts| self.evaluations_since.is_none_or(|since| ticket.imported_at >= since);
        let tickets: Vec<TicketFacts> = removed.into_iter().filter(has_evaluation).collect();
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
    use assay_contracts::retention::Period;

    use super::*;

    const DAY: i64 = 24 * 60 * 60 * 1_000;

    fn removed(days_ago: &[i64], now: Timestamp) -> Vec<TicketFacts> {
        let ticket = |days: &i64| TicketFacts {
            id: new_id(),
            external_id: "T".to_owned(),
            source: "custom".to_owned(),
            source_account_id: None,
            subject: None,
            started_at: now,
            ended_at: now,
            imported_at: now.plus_millis(-days * DAY),
            agents: Vec::new(),
        };
        days_ago.iter().map(ticket).collect()
    }

    fn expiry(transcripts: Period, evaluations: Period, now: Timestamp) -> Option<Expiry> {
        let organization_id = new_id();
        Expiry::of(&OrganizationRetention { organization_id, transcripts, evaluations, files: None }, now)
    }

    #[test]
    fn without_a_period_nothing_expires() {
        assert!(expiry(Period::Forever, Period::Days(1), Timestamp::MAX).is_none());
    }

    #[test]
    fn tickets_are_told_of_in_small_events_and_only_while_their_evaluations_are_kept() {
        let now = Timestamp::saturating_from_millis(1_000 * DAY);
        let ages = [vec![31; 45], vec![61, 62]].concat();
        let cases =
            [(Period::Forever, 3), (Period::Days(60), 3), (Period::Days(32), 3), (Period::Days(30), 0)];
        for (evaluations, events) in cases {
            let expiry = expiry(Period::Days(30), evaluations, now).unwrap();
            assert_eq!(expiry.events(removed(&ages, now)).unwrap().len(), events, "{evaluations:?}");
        }
    }
}
