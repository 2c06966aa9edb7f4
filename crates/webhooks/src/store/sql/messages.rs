//! Messages: insertion, log, replay and erasure.

use std::collections::HashSet;

use assay_contracts::ids::{OrganizationId, TicketId, WebhookDeliveryId, WebhookId};
use assay_contracts::notification::EvaluationRetracted;
use assay_contracts::time::Timestamp;
use assay_contracts::webhook::{WebhookAttempt, WebhookDelivery, WebhookEvent};
use assay_messaging::inbox::Connection as _;
use assay_platform::db::{DatabaseError, StoredId};
use assay_platform::runtime::new_id;
use assay_platform::web::cursor::Position;
use diesel::dsl::{Eq, sql};
use diesel::expression::SqlLiteral;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Text};

use super::Connection;
use super::record::{AttemptRecord, DeliveryRecord, EndpointRecord};
use super::schema::{attempts, deliveries, endpoints, retractions};
use crate::domain::endpoint::{Endpoint, EndpointReference};
use crate::domain::message::{Message, Notification};
use crate::store::{
    CONSUMER, LogPage, LoggedDelivery, MAX_LISTED_ATTEMPTS, MAX_STORED_TESTS, ReceivedEvent, ReplayOutcome,
};

/// Maximum number of rows per statement: the number of bound values is limited.
const MAX_ROWS: usize = 500;

/// A literal that equals the predicate of the partial index: with a bound value the index would not be used.
const IS_TEST: &str = "event = 'webhook.test'";

/// The columns that [`erasure`] sets.
type Erasure = (
    Eq<deliveries::payload, Option<String>>,
    Eq<deliveries::status, SqlLiteral<Text>>,
    Eq<deliveries::lease, Option<StoredId>>,
);

struct NewDelivery<'a> {
    id: WebhookDeliveryId,
    endpoint: &'a Endpoint,
    message: Message,
}

pub fn enqueue(
    connection: &mut Connection,
    received: Vec<ReceivedEvent>,
    due: Timestamp,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let ids: Vec<_> = received.iter().map(ReceivedEvent::event_id).collect();
    let mut new_events = connection.record_events(CONSUMER, &ids, now)?;
    let mut notifications = Vec::new();
    for event in received {
        // A batch may hold an event twice.
        if !new_events.remove(&event.event_id()) {
            continue;
        }
        match event {
            ReceivedEvent::Notification(_, notification) => notifications.push(notification),
            ReceivedEvent::Retraction(_, retracted) => retract(connection, &retracted)?,
        }
    }
    let retracted = retracted_tickets(connection, &notifications)?;
    notifications.retain(|notification| notification.ticket_id().is_none_or(|id| !retracted.contains(&id)));
    let endpoints = endpoints_of(connection, &notifications)?;
    let mut new_deliveries = Vec::new();
    for notification in &notifications {
        for endpoint in &endpoints {
            let messages = notification
                .messages_for(endpoint)
                .map_err(|error| DatabaseError::Corrupt(error.to_string()))?;
            let new = messages.into_iter().map(|message| NewDelivery { id: new_id(), endpoint, message });
            new_deliveries.extend(new);
            // In portions: a batch for twenty endpoints has thousands of messages, each with its payload.
            if new_deliveries.len() >= MAX_ROWS {
                insert(connection, &new_deliveries, due, now)?;
                new_deliveries.clear();
            }
        }
    }
    insert(connection, &new_deliveries, due, now)
}

pub fn add(
    connection: &mut Connection,
    endpoint: &Endpoint,
    id: WebhookDeliveryId,
    message: Message,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let is_test = message.event == WebhookEvent::Test;
    insert(connection, &[NewDelivery { id, endpoint, message }], now, now)?;
    if is_test { remove_old_tests(connection, endpoint.id) } else { Ok(()) }
}

fn remove_old_tests(connection: &mut Connection, endpoint_id: WebhookId) -> Result<(), DatabaseError> {
    let is_test: SqlLiteral<Bool> = sql::<Bool>(IS_TEST);
    let old: Vec<StoredId> = deliveries::table
        .select(deliveries::id)
        .filter(deliveries::endpoint_id.eq(StoredId::of(endpoint_id)))
        .filter(is_test)
        .order((deliveries::created_at.desc(), deliveries::id.desc()))
        .limit(i64::try_from(MAX_ROWS).unwrap_or(i64::MAX))
        .offset(i64::try_from(MAX_STORED_TESTS).unwrap_or(i64::MAX))
        .load(connection)?;
    diesel::delete(deliveries::table.filter(deliveries::id.eq_any(old))).execute(connection)?;
    Ok(())
}

fn endpoints_of(
    connection: &mut Connection,
    notifications: &[Notification],
) -> Result<Vec<Endpoint>, DatabaseError> {
    let organizations: HashSet<OrganizationId> =
        notifications.iter().map(Notification::organization_id).collect();
    let organizations: Vec<StoredId> = organizations.into_iter().map(StoredId::of).collect();
    let found: Vec<EndpointRecord> = endpoints::table
        .select(EndpointRecord::as_select())
        .filter(endpoints::organization_id.eq_any(organizations))
        .filter(endpoints::enabled)
        .filter(endpoints::deleted_at.is_null())
        .load(connection)?;
    Ok(found.into_iter().map(Endpoint::from).collect())
}

fn insert(
    connection: &mut Connection,
    new_deliveries: &[NewDelivery<'_>],
    due: Timestamp,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    for batch in new_deliveries.chunks(MAX_ROWS) {
        let rows: Vec<_> = batch
            .iter()
            .map(|delivery| {
                (
                    deliveries::id.eq(StoredId::of(delivery.id)),
                    deliveries::endpoint_id.eq(StoredId::of(delivery.endpoint.id)),
                    deliveries::organization_id.eq(StoredId::of(delivery.endpoint.organization_id)),
                    deliveries::event.eq(delivery.message.event.as_str()),
                    deliveries::ticket_id.eq(delivery.message.ticket_id.map(StoredId::of)),
                    deliveries::payload.eq(Some(delivery.message.payload.as_str())),
                    deliveries::status.eq("pending"),
                    deliveries::due_at.eq(due.as_millis()),
                    deliveries::created_at.eq(now.as_millis()),
                )
            })
            .collect();
        diesel::insert_into(deliveries::table).values(rows).execute(connection)?;
    }
    Ok(())
}

/// Erases the messages about a ticket, and stores the retraction against messages that are enqueued later.
fn retract(connection: &mut Connection, retracted: &EvaluationRetracted) -> Result<(), DatabaseError> {
    let EvaluationRetracted { organization_id, ticket_id, deleted_at } = *retracted;
    diesel::insert_into(retractions::table)
        .values((
            retractions::ticket_id.eq(StoredId::of(ticket_id)),
            retractions::deleted_at.eq(deleted_at.as_millis()),
        ))
        .on_conflict_do_nothing()
        .execute(connection)?;
    let of_ticket = deliveries::table
        .filter(deliveries::organization_id.eq(StoredId::of(organization_id)))
        .filter(deliveries::ticket_id.eq(Some(StoredId::of(ticket_id))));
    // One statement: between two, a replay could make an erased message pending.
    diesel::update(of_ticket).set(erasure()).execute(connection)?;
    Ok(())
}

/// The changes of a message whose ticket was deleted: it loses its payload, and its status becomes failed if it was pending.
pub(super) fn erasure() -> Erasure {
    const STATUS: &str = "CASE WHEN status = 'pending' THEN 'failed' ELSE status END";
    (deliveries::payload.eq(None), deliveries::status.eq(sql::<Text>(STATUS)), deliveries::lease.eq(None))
}

fn retracted_tickets(
    connection: &mut Connection,
    notifications: &[Notification],
) -> Result<HashSet<TicketId>, DatabaseError> {
    let tickets: Vec<StoredId> =
        notifications.iter().filter_map(Notification::ticket_id).map(StoredId::of).collect();
    let found: Vec<StoredId> = retractions::table
        .select(retractions::ticket_id)
        .filter(retractions::ticket_id.eq_any(tickets))
        .load(connection)?;
    Ok(found.into_iter().map(|id| id.0.into()).collect())
}

pub fn list(connection: &mut Connection, page: &LogPage) -> Result<Vec<WebhookDelivery>, DatabaseError> {
    let mut query = deliveries::table
        .select(DeliveryRecord::as_select())
        .filter(deliveries::endpoint_id.eq(StoredId::of(page.endpoint.id)))
        .filter(deliveries::organization_id.eq(StoredId::of(page.endpoint.organization_id)))
        .order((deliveries::created_at.desc(), deliveries::id.desc()))
        .limit(i64::from(page.limit))
        .into_boxed();
    if let Some(status) = page.status {
        query = query.filter(deliveries::status.eq(status.as_str()));
    }
    if let Some(Position { created_at, id }) = page.after {
        let moment = created_at.as_millis();
        query = query
            .filter(deliveries::created_at.le(moment))
            .filter(deliveries::created_at.lt(moment).or(deliveries::id.lt(StoredId(id))));
    }
    query.load::<DeliveryRecord>(connection)?.into_iter().map(WebhookDelivery::try_from).collect()
}

pub fn find(
    connection: &mut Connection,
    endpoint: EndpointReference,
    id: WebhookDeliveryId,
) -> Result<Option<LoggedDelivery>, DatabaseError> {
    let found: Option<(DeliveryRecord, Option<String>)> = deliveries::table
        .find(StoredId::of(id))
        .select((DeliveryRecord::as_select(), deliveries::payload))
        .filter(deliveries::endpoint_id.eq(StoredId::of(endpoint.id)))
        .filter(deliveries::organization_id.eq(StoredId::of(endpoint.organization_id)))
        .first(connection)
        .optional()?;
    let Some((delivery, payload)) = found else { return Ok(None) };
    let mut latest: Vec<AttemptRecord> = attempts::table
        .select(AttemptRecord::as_select())
        .filter(attempts::delivery_id.eq(StoredId::of(id)))
        .order(attempts::number.desc())
        .limit(MAX_LISTED_ATTEMPTS)
        .load(connection)?;
    latest.reverse();
    let attempts = latest.into_iter().map(WebhookAttempt::from).collect();
    Ok(Some(LoggedDelivery { delivery: delivery.try_into()?, payload, attempts }))
}

pub fn replay(
    connection: &mut Connection,
    endpoint: EndpointReference,
    id: WebhookDeliveryId,
    now: Timestamp,
) -> Result<ReplayOutcome, DatabaseError> {
    // A message in flight stays as it is: its current attempt serves the request.
    let is_not_leased = deliveries::lease.is_null().or(deliveries::due_at.le(now.as_millis()));
    diesel::update(deliveries::table.find(StoredId::of(id)))
        .filter(deliveries::endpoint_id.eq(StoredId::of(endpoint.id)))
        .filter(deliveries::organization_id.eq(StoredId::of(endpoint.organization_id)))
        .filter(deliveries::payload.is_not_null())
        .filter(is_not_leased)
        .set((
            deliveries::status.eq("pending"),
            deliveries::due_at.eq(now.as_millis()),
            deliveries::earlier_attempts.eq(deliveries::attempts),
            deliveries::lease.eq(None::<StoredId>),
        ))
        .execute(connection)?;
    // Read after the update: a concurrent erasure waits for this transaction, and then finds the message pending and fails it.
    match find(connection, endpoint, id)? {
        None => Ok(ReplayOutcome::NotFound),
        Some(found) if found.payload.is_none() => Ok(ReplayOutcome::Erased),
        Some(_) => Ok(ReplayOutcome::Queued),
    }
}
