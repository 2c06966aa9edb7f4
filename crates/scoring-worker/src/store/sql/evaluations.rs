//! Evaluations, and their count for each organization.

use std::collections::{BTreeMap, HashSet};

use assay_contracts::event::ConversationEvaluated;
use assay_contracts::ids::{EventId, OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::OutgoingEvent;
use assay_messaging::inbox::Connection as _;
use assay_messaging::outbox::{Connection as _, FastPathClaim};
use assay_platform::db::{DatabaseError, StoredId};
use assay_platform::runtime::{new_id, now};
use diesel::prelude::*;

use super::schema::{evaluations, progress};
use super::{Connection, insert};
use crate::store::{CONSUMER, NewEvaluation, StoredEvaluation};

/// A recorded evaluation and the time with which it was recorded.
type Recorded<'e> = (&'e NewEvaluation, Timestamp);

/// Runs inside a transaction.
pub fn record(
    connection: &mut Connection,
    batch: &[NewEvaluation],
    claim: FastPathClaim,
) -> Result<Vec<OutgoingEvent>, DatabaseError> {
    let ids: Vec<_> = batch.iter().map(|evaluation| evaluation.source_event_id).collect();
    let unhandled = connection.record_events(CONSUMER, &ids, now())?;
    let candidates = new_evaluations(batch, &unhandled);
    let times = insert(connection, &candidates)?;
    let recorded =
        candidates.into_iter().filter_map(|new| Some((new, *times.get(&new.evaluated.evaluation_id)?)));
    publish(connection, recorded, claim)
}

/// Runs inside a transaction. No inbox entry, so that the event can be retried by an operator.
pub fn record_given_up(connection: &mut Connection, failure: &NewEvaluation) -> Result<bool, DatabaseError> {
    let evaluated = &failure.evaluated;
    let inserted = diesel::insert_into(evaluations::table)
        .values((
            evaluations::ticket_id.eq(StoredId::of(evaluated.ticket.id)),
            evaluations::id.eq(StoredId::of(evaluated.evaluation_id)),
            evaluations::organization_id.eq(StoredId::of(evaluated.organization_id)),
            evaluations::status.eq(failure.status.as_str()),
            evaluations::error_message.eq(failure.error_message()),
            evaluations::scorer_version.eq(&failure.scorer_version),
            evaluations::created_at.eq(evaluated.evaluated_at.as_millis()),
            evaluations::given_up.eq(true),
        ))
        .on_conflict_do_nothing()
        .execute(connection)?;
    if inserted == 0 {
        return Ok(false);
    }
    publish(connection, [(failure, evaluated.evaluated_at)].into_iter(), FastPathClaim::NONE)?;
    Ok(true)
}

/// Assigns sequences to recorded evaluations and writes their events to the outbox.
fn publish<'e>(
    connection: &mut Connection,
    recorded: impl Iterator<Item = Recorded<'e>>,
    claim: FastPathClaim,
) -> Result<Vec<OutgoingEvent>, DatabaseError> {
    let (mut events, mut announced) = (Vec::new(), Vec::new());
    // Sorted, so that concurrent transactions lock the rows of `progress` in the same order.
    let mut organizations: BTreeMap<OrganizationId, Vec<Recorded<'_>>> = BTreeMap::new();
    for (new, time) in recorded {
        announced.extend(new.announced_event.clone());
        organizations.entry(new.evaluated.organization_id).or_default().push((new, time));
    }
    for (organization_id, evaluations) in organizations {
        let total = add_to_progress(connection, organization_id, evaluations.len())?;
        events.extend(assign_sequences(evaluations, total)?);
    }
    events.extend(announced);
    connection.enqueue_events(&events, claim)?;
    Ok(events)
}

/// The evaluations of events that were not handled before, one for each ticket (a batch may contain an event twice). One event may
/// lead to several evaluations. Sorted by ticket, so that concurrent transactions lock rows in the same order.
fn new_evaluations<'e>(batch: &'e [NewEvaluation], unhandled: &HashSet<EventId>) -> Vec<&'e NewEvaluation> {
    let is_unhandled = |evaluation: &&NewEvaluation| unhandled.contains(&evaluation.source_event_id);
    let mut evaluations: Vec<_> = batch.iter().filter(is_unhandled).collect();
    evaluations.sort_by_key(|evaluation| evaluation.evaluated.ticket.id);
    evaluations.dedup_by_key(|evaluation| evaluation.evaluated.ticket.id);
    evaluations
}

/// Increments the count of an organization and returns it. The row stays locked until the end of the transaction, so that
/// sequences follow the order of commits.
fn add_to_progress(
    connection: &mut Connection,
    organization_id: OrganizationId,
    more: usize,
) -> Result<i64, DatabaseError> {
    let more = i64::try_from(more).unwrap_or(i64::MAX);
    let total = diesel::insert_into(progress::table)
        .values((progress::organization_id.eq(StoredId::of(organization_id)), progress::evaluated.eq(more)))
        .on_conflict(progress::organization_id)
        .do_update()
        .set(progress::evaluated.eq(progress::evaluated + more))
        .returning(progress::evaluated)
        .get_result(connection)?;
    Ok(total)
}

/// The events of the inserted evaluations, numbered so that the last one has the sequence `total`.
fn assign_sequences(evaluations: Vec<Recorded<'_>>, total: i64) -> Result<Vec<OutgoingEvent>, DatabaseError> {
    let previous_total = total - i64::try_from(evaluations.len()).unwrap_or(i64::MAX);
    let events = evaluations.into_iter().zip(previous_total + 1..).map(|((new, evaluated_at), sequence)| {
        // Cloned one at a time, which bounds the memory.
        let evaluated = ConversationEvaluated { sequence, evaluated_at, ..new.evaluated.clone() };
        OutgoingEvent::following(new.context.clone(), new_id(), evaluated_at, &evaluated)
    });
    // The document was encoded before: this does not fail.
    events.collect::<Result<_, _>>().map_err(|error| DatabaseError::Corrupt(error.to_string()))
}

pub fn find(
    connection: &mut Connection,
    organization_id: OrganizationId,
    ticket_id: TicketId,
) -> Result<Option<StoredEvaluation>, DatabaseError> {
    let found: Option<(StoredId, Option<String>, Option<String>, i64)> = evaluations::table
        .find(StoredId::of(ticket_id))
        .filter(evaluations::organization_id.eq(StoredId::of(organization_id)))
        .select((evaluations::id, evaluations::document, evaluations::error_message, evaluations::created_at))
        .first(connection)
        .optional()?;
    Ok(found.map(|(id, document, error_message, created_at)| StoredEvaluation {
        id: id.0.into(),
        document,
        error_message,
        created_at: Timestamp::saturating_from_millis(created_at),
    }))
}

pub fn finished(
    connection: &mut Connection,
    tickets: &[TicketId],
) -> Result<HashSet<TicketId>, DatabaseError> {
    let found: Vec<StoredId> = evaluations::table
        .filter(evaluations::ticket_id.eq_any(tickets.iter().copied().map(StoredId::of)))
        .filter(evaluations::given_up.eq(false))
        .select(evaluations::ticket_id)
        .order(evaluations::ticket_id)
        .limit(i64::try_from(tickets.len()).unwrap_or(i64::MAX))
        .load(connection)?;
    Ok(found.into_iter().map(|id| id.0.into()).collect())
}

pub fn count(connection: &mut Connection, organization_id: OrganizationId) -> Result<i64, DatabaseError> {
    let progress = progress::table.find(StoredId::of(organization_id));
    let found = progress.select(progress::evaluated).first(connection).optional()?;
    Ok(found.unwrap_or(0))
}
