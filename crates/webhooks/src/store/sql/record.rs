//! Rows, and their conversion to domain types.

use assay_contracts::evaluation::Score;
use assay_contracts::time::Timestamp;
use assay_contracts::webhook::{
    AttemptError, DeliveryStatus, DisabledReason, WebhookAttempt, WebhookDelivery, WebhookEvent,
};
use assay_platform::db::{DatabaseError, StoredId};
use diesel::prelude::*;

use super::schema::{attempts, deliveries, endpoints};
use crate::domain::endpoint::Endpoint;
use crate::domain::secret::{SealedSecret, SealedSecrets};

#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = endpoints)]
pub(in crate::store) struct EndpointRecord {
    id: StoredId,
    organization_id: StoredId,
    url: String,
    description: Option<String>,
    events: String,
    low_score_tenths: i16,
    enabled: bool,
    disabled_reason: Option<String>,
    secret: String,
    previous_secret: Option<String>,
    previous_secret_until: Option<i64>,
    failing_since: Option<i64>,
    created_at: i64,
    updated_at: i64,
}

/// Unknown event names were written by a later release. They are ignored: endpoints are read in batches, and one row must not
/// block the messages of the others.
impl From<EndpointRecord> for Endpoint {
    fn from(record: EndpointRecord) -> Self {
        Self {
            id: record.id.0.into(),
            organization_id: record.organization_id.0.into(),
            events: record.events.split_ascii_whitespace().filter_map(WebhookEvent::from_name).collect(),
            low_score_below: Score::nearest(f64::from(record.low_score_tenths) / 10.0),
            enabled: record.enabled,
            disabled_reason: record.disabled_reason.as_deref().and_then(DisabledReason::from_name),
            secrets: secrets(record.secret, record.previous_secret, record.previous_secret_until),
            failing_since: record.failing_since.map(Timestamp::saturating_from_millis),
            created_at: Timestamp::saturating_from_millis(record.created_at),
            updated_at: Timestamp::saturating_from_millis(record.updated_at),
            url: record.url,
            description: record.description,
        }
    }
}

pub(super) fn secrets(current: String, previous: Option<String>, until: Option<i64>) -> SealedSecrets {
    let previous = previous.zip(until);
    let previous = previous
        .map(|(secret, until)| (SealedSecret::from(secret), Timestamp::saturating_from_millis(until)));
    SealedSecrets { current: current.into(), previous }
}

/// The column `events`.
pub(super) fn event_names(endpoint: &Endpoint) -> String {
    let names: Vec<&str> = endpoint.events.iter().map(|event| event.as_str()).collect();
    names.join(" ")
}

/// A message of the log.
#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = deliveries)]
pub(super) struct DeliveryRecord {
    id: StoredId,
    event: String,
    status: String,
    attempts: i32,
    due_at: i64,
    created_at: i64,
}

impl TryFrom<DeliveryRecord> for WebhookDelivery {
    type Error = DatabaseError;

    fn try_from(record: DeliveryRecord) -> Result<Self, DatabaseError> {
        let corrupt = |what: &str| DatabaseError::Corrupt(format!("delivery {}: {what}", record.id.0));
        let status = DeliveryStatus::from_name(&record.status).ok_or_else(|| corrupt("unknown status"))?;
        let due_at = Timestamp::saturating_from_millis(record.due_at);
        Ok(Self {
            id: record.id.0.into(),
            event: WebhookEvent::from_name(&record.event).ok_or_else(|| corrupt("unknown event"))?,
            status,
            attempts: u32::try_from(record.attempts).map_err(|_| corrupt("attempts below 0"))?,
            next_attempt_at: (status == DeliveryStatus::Pending).then_some(due_at),
            created_at: Timestamp::saturating_from_millis(record.created_at),
        })
    }
}

#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = attempts)]
pub(super) struct AttemptRecord {
    number: i32,
    attempted_at: i64,
    duration_ms: i64,
    status_code: Option<i16>,
    error: Option<String>,
}

impl From<AttemptRecord> for WebhookAttempt {
    fn from(record: AttemptRecord) -> Self {
        Self {
            number: u32::try_from(record.number).unwrap_or_default(),
            attempted_at: Timestamp::saturating_from_millis(record.attempted_at),
            duration_ms: u64::try_from(record.duration_ms).unwrap_or_default(),
            status_code: record.status_code.and_then(|code| u16::try_from(code).ok()),
            error: record.error.as_deref().and_then(AttemptError::from_name),
        }
    }
}
