//! Endpoints and their secrets.

use assay_contracts::ids::{OrganizationId, WebhookId};
use assay_contracts::time::Timestamp;
use assay_contracts::webhook::{DisabledReason, WebhookChange};
use assay_platform::db::idempotency::Connection as _;
use assay_platform::db::{DatabaseError, StoredId};
use assay_platform::web::cursor::Position;
use diesel::dsl::auto_type;
use diesel::prelude::*;

use super::record::{EndpointRecord, event_names, secrets};
use super::schema::endpoints;
use super::{Connection, find_for_update, lock_creation};
use crate::domain::endpoint::{Endpoint, EndpointReference};
use crate::domain::secret::{SealedSecret, SealedSecrets};
use crate::store::{CreateOutcome, Creation};

pub fn create(connection: &mut Connection, creation: &Creation) -> Result<CreateOutcome, DatabaseError> {
    let endpoint = &creation.endpoint;
    // Must come first: the key makes an equal request wait until this one is committed.
    if let Some(record) = &creation.record {
        let key_uses = connection.store_keys(std::slice::from_ref(record), endpoint.created_at)?;
        if let Some(earlier) = key_uses.into_iter().flatten().next() {
            return Ok(CreateOutcome::IdempotencyKeyReused(earlier));
        }
    }
    lock_creation(connection, endpoint.organization_id)?;
    let count: i64 = endpoints::table
        .filter(endpoints::organization_id.eq(StoredId::of(endpoint.organization_id)))
        .filter(endpoints::deleted_at.is_null())
        .count()
        .get_result(connection)?;
    if count >= i64::from(creation.limit) {
        // A refused request does not use up its key.
        let keys: Vec<_> =
            creation.record.iter().map(|record| (record.organization_id, &record.key)).collect();
        connection.delete_keys(&keys)?;
        return Ok(CreateOutcome::LimitReached);
    }
    insert(connection, endpoint)?;
    Ok(CreateOutcome::Created)
}

fn insert(connection: &mut Connection, endpoint: &Endpoint) -> Result<(), DatabaseError> {
    diesel::insert_into(endpoints::table)
        .values((
            endpoints::id.eq(StoredId::of(endpoint.id)),
            endpoints::organization_id.eq(StoredId::of(endpoint.organization_id)),
            endpoints::url.eq(&endpoint.url),
            endpoints::description.eq(&endpoint.description),
            endpoints::events.eq(event_names(endpoint)),
            endpoints::wants_evaluations.eq(endpoint.wants_evaluations()),
            endpoints::low_score_tenths.eq(i16::from(endpoint.low_score_below.tenths())),
            endpoints::enabled.eq(endpoint.enabled),
            endpoints::secret.eq(endpoint.secrets.current.as_str()),
            endpoints::given_up.eq(0),
            endpoints::created_at.eq(endpoint.created_at.as_millis()),
            endpoints::updated_at.eq(endpoint.updated_at.as_millis()),
        ))
        .execute(connection)?;
    Ok(())
}

pub fn list(
    connection: &mut Connection,
    organization_id: OrganizationId,
    after: Option<Position>,
    limit: u32,
) -> Result<Vec<Endpoint>, DatabaseError> {
    let mut query = endpoints::table
        .select(EndpointRecord::as_select())
        .filter(endpoints::organization_id.eq(StoredId::of(organization_id)))
        .filter(endpoints::deleted_at.is_null())
        .order((endpoints::created_at.desc(), endpoints::id.desc()))
        .limit(i64::from(limit))
        .into_boxed();
    if let Some(Position { created_at, id }) = after {
        let moment = created_at.as_millis();
        query = query
            .filter(endpoints::created_at.le(moment))
            .filter(endpoints::created_at.lt(moment).or(endpoints::id.lt(StoredId(id))));
    }
    Ok(query.load::<EndpointRecord>(connection)?.into_iter().map(Endpoint::from).collect())
}

/// The endpoint, unless it is deleted or another organization's.
#[auto_type]
pub(in crate::store) fn existing_endpoint(endpoint: EndpointReference) -> _ {
    let organization_id: StoredId = StoredId::of(endpoint.organization_id);
    let id: StoredId = StoredId::of(endpoint.id);
    endpoints::table
        .find(id)
        .filter(endpoints::organization_id.eq(organization_id))
        .filter(endpoints::deleted_at.is_null())
}

pub fn find(
    connection: &mut Connection,
    endpoint: EndpointReference,
) -> Result<Option<Endpoint>, DatabaseError> {
    let found: Option<EndpointRecord> =
        existing_endpoint(endpoint).select(EndpointRecord::as_select()).first(connection).optional()?;
    Ok(found.map(Endpoint::from))
}

pub fn change(
    connection: &mut Connection,
    endpoint: EndpointReference,
    change: WebhookChange,
    now: Timestamp,
) -> Result<Option<Endpoint>, DatabaseError> {
    let Some(found) = find_for_update(connection, endpoint)? else { return Ok(None) };
    let (sets_enabled, sets_events) = (change.enabled.is_some(), change.events.is_some());
    let previous_url = found.url.clone();
    let endpoint = found.changed(change, now);
    // Written only when they change: the columns may hold names of a later release, which `found` does not have.
    let events = sets_events.then(|| {
        (
            endpoints::events.eq(event_names(&endpoint)),
            endpoints::wants_evaluations.eq(endpoint.wants_evaluations()),
        )
    });
    let state = sets_enabled.then(|| {
        (
            endpoints::enabled.eq(endpoint.enabled),
            endpoints::disabled_reason.eq(endpoint.disabled_reason.map(DisabledReason::as_str)),
        )
    });
    let reset_failures = (sets_enabled || endpoint.url != previous_url)
        .then(|| (endpoints::failing_since.eq(None::<i64>), endpoints::given_up.eq(0)));
    diesel::update(endpoints::table.find(StoredId::of(endpoint.id)))
        .set((
            endpoints::url.eq(&endpoint.url),
            endpoints::description.eq(&endpoint.description),
            events,
            state,
            reset_failures,
            endpoints::low_score_tenths.eq(i16::from(endpoint.low_score_below.tenths())),
            endpoints::updated_at.eq(endpoint.updated_at.as_millis()),
        ))
        .execute(connection)?;
    Ok(Some(endpoint))
}

/// Clears the row. Maintenance removes the messages and then the row.
pub fn delete(
    connection: &mut Connection,
    endpoint: EndpointReference,
    now: Timestamp,
) -> Result<bool, DatabaseError> {
    let deleted = diesel::update(existing_endpoint(endpoint))
        .set((
            endpoints::deleted_at.eq(now.as_millis()),
            endpoints::enabled.eq(false),
            endpoints::url.eq(""),
            endpoints::description.eq(None::<String>),
            endpoints::secret.eq(""),
            endpoints::previous_secret.eq(None::<String>),
            endpoints::previous_secret_until.eq(None::<i64>),
        ))
        .execute(connection)?;
    Ok(deleted == 1)
}

pub fn rotate(
    connection: &mut Connection,
    endpoint: EndpointReference,
    secret: &SealedSecret,
    previous_until: Timestamp,
) -> Result<bool, DatabaseError> {
    let rotated = diesel::update(existing_endpoint(endpoint))
        .set((
            endpoints::previous_secret.eq(endpoints::secret.nullable()),
            endpoints::previous_secret_until.eq(previous_until.as_millis()),
            endpoints::secret.eq(secret.as_str()),
        ))
        .execute(connection)?;
    Ok(rotated == 1)
}

pub fn evaluation_subscribers(
    connection: &mut Connection,
    after: Option<OrganizationId>,
    limit: u32,
) -> Result<Vec<OrganizationId>, DatabaseError> {
    let mut query = endpoints::table
        .select(endpoints::organization_id)
        .distinct()
        .filter(endpoints::enabled)
        .filter(endpoints::wants_evaluations)
        .filter(endpoints::deleted_at.is_null())
        .order(endpoints::organization_id)
        .limit(i64::from(limit))
        .into_boxed();
    if let Some(after) = after {
        query = query.filter(endpoints::organization_id.gt(StoredId::of(after)));
    }
    Ok(query.load::<StoredId>(connection)?.into_iter().map(|id| id.0.into()).collect())
}

pub fn all_secrets(
    connection: &mut Connection,
    after: Option<WebhookId>,
    limit: u32,
) -> Result<Vec<(WebhookId, SealedSecrets)>, DatabaseError> {
    let mut query = endpoints::table
        .select((
            endpoints::id,
            endpoints::secret,
            endpoints::previous_secret,
            endpoints::previous_secret_until,
        ))
        .filter(endpoints::deleted_at.is_null())
        .order(endpoints::id)
        .limit(i64::from(limit))
        .into_boxed();
    if let Some(after) = after {
        query = query.filter(endpoints::id.gt(StoredId::of(after)));
    }
    let rows: Vec<(StoredId, String, Option<String>, Option<i64>)> = query.load(connection)?;
    Ok(rows
        .into_iter()
        .map(|(id, current, previous, until)| (id.0.into(), secrets(current, previous, until)))
        .collect())
}

pub fn reseal(
    connection: &mut Connection,
    id: WebhookId,
    expected: &SealedSecrets,
    resealed: &SealedSecrets,
) -> Result<(), DatabaseError> {
    let previous = resealed.previous.as_ref();
    diesel::update(endpoints::table.find(StoredId::of(id)))
        .filter(endpoints::secret.eq(expected.current.as_str()))
        .set((
            endpoints::secret.eq(resealed.current.as_str()),
            endpoints::previous_secret.eq(previous.map(|(secret, _)| secret.as_str())),
            endpoints::previous_secret_until.eq(previous.map(|(_, until)| until.as_millis())),
        ))
        .execute(connection)?;
    Ok(())
}
