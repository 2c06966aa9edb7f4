//! The wire format: CloudEvents 1.0 in structured mode, JSON (CloudEvents specification 1.0.2, JSON event format).

use assay_contracts::event::Event;
use assay_contracts::ids::{EventId, OrganizationId};
use assay_contracts::json::JsonFault;
use assay_contracts::time::Timestamp;
use assay_platform::runtime::RequestContext;
use chrono::DateTime;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

const SPECIFICATION_VERSION: &str = "1.0";
const SOURCE: &str = "/assay";
const DATA_CONTENT_TYPE: &str = "application/json";

/// An encoded event, ready to be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingEvent {
    pub(crate) id: EventId,
    pub(crate) topic: String,
    pub(crate) organization_id: OrganizationId,
    /// Whether a missing queue is an error.
    pub(crate) needs_consumer: bool,
    /// The encoded envelope.
    pub(crate) payload: String,
    /// Number of the next delivery attempt, from 1.
    pub(crate) attempt: u32,
    /// How many deliveries before this publication ended with the process; RabbitMQ counts those after it (`x-delivery-count`).
    pub(crate) times_cut_short: u32,
}

/// An event cannot be written as JSON.
#[derive(Debug, thiserror::Error)]
#[error("event {topic} cannot be encoded: {source}")]
pub struct EncodeError {
    topic: String,
    source: serde_json::Error,
}

/// A delivery is not the expected event. A redelivery will not help.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not a CloudEvents 1.0 envelope with our attributes.
    #[error("message is not a CloudEvents 1.0 envelope: {0}")]
    Envelope(String),
    /// Not an array of envelopes although the message is a batch.
    #[error("message is not a batch of CloudEvents 1.0 envelopes: {0}")]
    Batch(String),
    /// An event of another topic.
    #[error("expected an event {expected}, got {found}")]
    OtherTopic {
        /// Topic that the consumer decodes.
        expected: &'static str,
        /// Topic of the delivery.
        found: String,
    },
    /// The data does not match the type of the event.
    #[error("payload of event {topic} cannot be decoded: {source}")]
    Payload {
        /// Topic of the event.
        topic: String,
        /// Fault of the JSON text.
        source: JsonFault,
    },
}

impl OutgoingEvent {
    /// Encodes an event with the request id and the trace of the current request, if any.
    ///
    /// # Errors
    /// When the event cannot be encoded as JSON, which is a bug in its type.
    pub fn new<E: Event>(id: EventId, occurred_at: Timestamp, event: &E) -> Result<Self, EncodeError> {
        Self::following(RequestContext::current(), id, occurred_at, event)
    }

    /// [`Self::new`] with the context of another request: a consumer handles events of many requests in one batch.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn following<E: Event>(
        context: Option<RequestContext>,
        id: EventId,
        occurred_at: Timestamp,
        event: &E,
    ) -> Result<Self, EncodeError> {
        Envelope::new(context, (id, E::TOPIC.name), occurred_at, event.organization_id(), event)
            .encode(E::TOPIC.needs_consumer)
    }

    /// The encoded envelope.
    pub fn payload(&self) -> &str {
        &self.payload
    }

    /// Name of the topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// Id of the event: the key of the inbox.
    pub fn id(&self) -> EventId {
        self.id
    }

    /// `times_cut_short` for the column `cut_short`.
    pub(crate) fn cut_short_column(&self) -> i32 {
        i32::try_from(self.times_cut_short).unwrap_or(i32::MAX)
    }
}

/// An event on the wire. Its consumer, who knows its type, decodes `data`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Envelope<D> {
    specversion: String,
    pub(crate) id: EventId,
    source: String,
    #[serde(rename = "type")]
    pub(crate) topic: String,
    time: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    datacontenttype: Option<String>,
    pub(crate) organizationid: OrganizationId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) requestid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) traceparent: Option<String>,
    /// The event was parked, and its consumer has returned it to the bus (ADR 26).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) assayreturned: bool,
    pub(crate) data: D,
}

impl<D: Serialize> Envelope<D> {
    pub(crate) fn new(
        context: Option<RequestContext>,
        (id, topic): (EventId, &str),
        occurred_at: Timestamp,
        organization_id: OrganizationId,
        data: D,
    ) -> Self {
        Self {
            specversion: SPECIFICATION_VERSION.into(),
            id,
            source: SOURCE.into(),
            topic: topic.into(),
            time: occurred_at.to_string(),
            datacontenttype: Some(DATA_CONTENT_TYPE.into()),
            organizationid: organization_id,
            requestid: context.as_ref().map(|context| context.request_id.clone()),
            traceparent: context.and_then(|context| context.traceparent),
            assayreturned: false,
            data,
        }
    }

    pub(crate) fn encode(self, needs_consumer: bool) -> Result<OutgoingEvent, EncodeError> {
        let payload = serde_json::to_string(&self)
            .map_err(|source| EncodeError { topic: self.topic.clone(), source })?;
        Ok(OutgoingEvent {
            id: self.id,
            topic: self.topic,
            organization_id: self.organizationid,
            needs_consumer,
            payload,
            attempt: 1,
            times_cut_short: 0,
        })
    }
}

impl Envelope<Box<RawValue>> {
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, DecodeError> {
        let envelope: Self = serde_json::from_slice(payload)
            .map_err(|error| DecodeError::Envelope(JsonFault::of(&error).to_string()))?;
        if envelope.specversion != SPECIFICATION_VERSION {
            return Err(DecodeError::Envelope("specversion is not \"1.0\"".to_owned()));
        }
        Ok(envelope)
    }

    /// The attribute `time`.
    pub(crate) fn occurred_at(&self) -> Result<Timestamp, DecodeError> {
        DateTime::parse_from_rfc3339(&self.time)
            .ok()
            .and_then(|moment| Timestamp::from_millis(moment.timestamp_millis()).ok())
            .ok_or_else(|| DecodeError::Envelope("time is not RFC 3339".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use assay_contracts::event::ConversationAccepted;
    use assay_contracts::ids::TicketId;
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::bus::Delivery;

    const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[tokio::test]
    async fn event_is_encoded_as_a_structured_cloudevent() {
        let context = RequestContext::from_headers(Some("request-1"), Some(TRACEPARENT));
        let event = context.scope(async { event() }).await;
        let expected = json!({
            "specversion": "1.0",
            "id": "00000000-0000-0000-0000-000000000001",
            "source": "/assay",
            "type": "conversation.accepted.v1",
            "time": "2026-11-20T07:06:34.123Z",
            "datacontenttype": "application/json",
            "organizationid": "00000000-0000-0000-0000-000000000002",
            "requestid": "request-1",
            "traceparent": TRACEPARENT,
            "data": {
                "organization_id": "00000000-0000-0000-0000-000000000002",
                "ticket_id": "00000000-0000-0000-0000-000000000003",
                "accepted_at": 1_795_158_394_000_i64,
            },
        });
        assert_eq!(serde_json::from_str::<Value>(&event.payload).unwrap(), expected);
    }

    #[test]
    fn encoded_event_parses_again() {
        let event = Delivery::parse(event().payload.as_bytes(), 1).unwrap();
        assert_eq!(event.id, EventId::from(Uuid::from_u128(1)));
        assert_eq!(event.organization_id, OrganizationId::from(Uuid::from_u128(2)));
        assert_eq!(event.occurred_at.as_millis(), 1_795_158_394_123);
        assert!(event.context().is_none());
    }

    #[test]
    fn unknown_attributes_are_ignored() {
        let payload = event().payload.replacen('{', "{\"comexampleother\": 1, ", 1);
        assert!(Delivery::parse(payload.as_bytes(), 1).is_ok());
    }

    #[test]
    fn envelope_error_does_not_quote_the_message() {
        let good = event().payload;
        for value in ["\"1.0\"", "\"2026-11-20T07:06:34.123Z\""] {
            let payload = good.replacen(value, "\"words of a customer\"", 1);
            let error = Delivery::parse(payload.as_bytes(), 1).unwrap_err().to_string();
            assert!(!error.contains("customer"), "{error}");
        }
        let object_as_id = good.replacen("{", "{\"id\":{\"words of a customer\":1},", 1);
        let error = Delivery::parse(object_as_id.as_bytes(), 1).unwrap_err().to_string();
        assert!(error.contains("JSON of another shape at 1:") && !error.contains("customer"), "{error}");
    }

    #[test]
    fn malformed_envelope_is_refused() {
        let good = event().payload;
        let cases = [
            "".to_owned(),
            "[]".to_owned(),
            good.replace("\"specversion\":\"1.0\"", "\"specversion\":\"0.3\""),
            good.replace("2026-11-20T07:06:34.123Z", "yesterday"),
            good.replace("organizationid", "organisation"),
            good.replace("\"id\":\"0", "\"id\":\"x"),
            good.replace("\"data\"", "\"date\""),
        ];
        for payload in cases {
            let result = Delivery::parse(payload.as_bytes(), 1);
            assert!(matches!(result, Err(DecodeError::Envelope(_))), "{payload}");
        }
    }

    fn event() -> OutgoingEvent {
        let accepted = ConversationAccepted {
            organization_id: Uuid::from_u128(2).into(),
            ticket_id: TicketId::from(Uuid::from_u128(3)),
            accepted_at: Timestamp::from_millis(1_795_158_394_000).unwrap(),
        };
        let occurred_at = Timestamp::from_millis(1_795_158_394_123).unwrap();
        OutgoingEvent::new(Uuid::from_u128(1).into(), occurred_at, &accepted).unwrap()
    }
}
