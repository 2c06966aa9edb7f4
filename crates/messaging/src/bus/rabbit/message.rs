//! Messages and their headers.

use std::borrow::Cow;

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, ShortString};

use crate::envelope::OutgoingEvent;

/// Number of the attempt, from 1. Absent means 1.
pub(super) const ATTEMPT_HEADER: &str = "x-assay-attempt";
/// How many deliveries of the event ended with the process or the connection before this message was published
/// ([`crate::bus::cut_short`]). Absent means 0.
const CUT_SHORT_HEADER: &str = "x-assay-cut-short";
/// How many deliveries of a message ended before it was acknowledged: set by quorum queues. Absent means 0.
const DELIVERY_COUNT_HEADER: &str = "x-delivery-count";
/// Reason of the last failure.
pub(super) const REASON_HEADER: &str = "x-assay-reason";
/// Time of the last failure: Unix epoch milliseconds.
pub(super) const FAILED_AT_HEADER: &str = "x-assay-failed-at";

/// CloudEvents' batched mode (specification 1.0.2, JSON event format, section 4).
pub(super) const BATCH_CONTENT_TYPE: &str = "application/cloudevents-batch+json";
/// CloudEvents' structured mode.
const CONTENT_TYPE: &str = "application/cloudevents+json";
/// Survives a restart of the broker (AMQP 0-9-1, basic.delivery-mode).
const PERSISTENT: u8 = 2;
/// The broker refuses a message whose headers exceed a frame of 128 KiB.
const MAX_REASON_BYTES: usize = 2_000;

/// A message to publish.
pub(super) struct Message<'m> {
    pub(super) exchange: ShortString,
    pub(super) routing_key: ShortString,
    /// Whether a missing queue is an error.
    pub(super) mandatory: bool,
    pub(super) payload: Cow<'m, [u8]>,
    pub(super) properties: BasicProperties,
}

/// An event as delivered, for publishing it again in a separate message.
pub(super) struct Original {
    pub(super) message_id: Option<ShortString>,
    pub(super) topic: Option<ShortString>,
    /// Number of this attempt, from 1.
    pub(super) attempt: u32,
    /// How many deliveries of the event ended with the process or the connection.
    pub(super) times_cut_short: u32,
    /// Those of them before this message was published.
    pub(super) earlier_times_cut_short: u32,
    pub(super) payload: Vec<u8>,
}

/// Headers of a failed delivery.
pub(super) struct Failure<'f> {
    pub(super) reason: &'f str,
    /// `None` when the broker dead-lettered the message itself.
    pub(super) failed_at_millis: Option<i64>,
    /// Of a dead letter the attempt that failed, otherwise the next attempt.
    pub(super) attempt: u32,
    /// How many deliveries ended with the process or the connection; 0 restarts the count.
    pub(super) times_cut_short: u32,
}

impl<'m> Message<'m> {
    /// A single event, for every queue bound to its topic.
    pub(super) fn of_event(event: &'m OutgoingEvent, exchange: &ShortString) -> Self {
        Self {
            exchange: exchange.clone(),
            routing_key: event.topic.as_str().into(),
            mandatory: event.needs_consumer,
            payload: Cow::Borrowed(event.payload.as_bytes()),
            properties: with_cut_short(
                properties(Some(event.id.to_string().into()), Some(event.topic.as_str().into())),
                event.times_cut_short,
            ),
        }
    }

    /// Several events with the routing of the first one.
    pub(super) fn of_batch(first: &OutgoingEvent, payload: Vec<u8>, exchange: &ShortString) -> Self {
        Self {
            exchange: exchange.clone(),
            routing_key: first.topic.as_str().into(),
            mandatory: first.needs_consumer,
            payload: Cow::Owned(payload),
            properties: properties(None, Some(first.topic.as_str().into()))
                .with_content_type(BATCH_CONTENT_TYPE.into()),
        }
    }

    /// A failed event, for one queue. The broker's headers of the original are not copied: because of its dead-lettering
    /// history the broker's cycle detection would drop the message.
    pub(super) fn of_failed(original: &'m Original, queue: ShortString, failure: &Failure<'_>) -> Self {
        let mut headers = FieldTable::default();
        headers.insert(REASON_HEADER.into(), AMQPValue::LongString(truncated(failure.reason).into()));
        let mut set = |name: &str, number: i64| {
            headers.insert(name.into(), AMQPValue::LongLongInt(number));
        };
        set(ATTEMPT_HEADER, i64::from(failure.attempt));
        if let Some(failed_at) = failure.failed_at_millis {
            set(FAILED_AT_HEADER, failed_at);
        }
        if failure.times_cut_short > 0 {
            set(CUT_SHORT_HEADER, i64::from(failure.times_cut_short));
        }
        let message = Self::of_original(original, queue);
        Self { properties: message.properties.with_headers(headers), ..message }
    }

    /// A delivered event, for one queue, as attempt 1.
    pub(super) fn of_original(original: &'m Original, queue: ShortString) -> Self {
        Self {
            exchange: "".into(),
            routing_key: queue,
            mandatory: true,
            payload: Cow::Borrowed(&original.payload),
            properties: properties(original.message_id.clone(), original.topic.clone()),
        }
    }
}

/// Number of a delivery's attempt, from 1.
pub(super) fn attempt(properties: &BasicProperties) -> u32 {
    count_header(properties, ATTEMPT_HEADER).max(1)
}

/// How many deliveries of the event ended with the process or the connection before this message was published.
pub(super) fn earlier_times_cut_short(properties: &BasicProperties) -> u32 {
    count_header(properties, CUT_SHORT_HEADER)
}

/// How many deliveries of this message ended before it was acknowledged.
pub(super) fn delivery_count(properties: &BasicProperties) -> u32 {
    count_header(properties, DELIVERY_COUNT_HEADER)
}

fn count_header(properties: &BasicProperties, name: &str) -> u32 {
    integer_header(properties, name).and_then(|count| u32::try_from(count).ok()).unwrap_or(0)
}

pub(super) fn integer_header(properties: &BasicProperties, name: &str) -> Option<i64> {
    match properties.headers().as_ref()?.inner().get(name)? {
        AMQPValue::LongLongInt(value) => Some(*value),
        AMQPValue::LongInt(value) => Some(i64::from(*value)),
        AMQPValue::LongUInt(value) => Some(i64::from(*value)),
        _ => None,
    }
}

fn with_cut_short(properties: BasicProperties, times_cut_short: u32) -> BasicProperties {
    if times_cut_short == 0 {
        return properties;
    }
    let mut headers = FieldTable::default();
    headers.insert(CUT_SHORT_HEADER.into(), AMQPValue::LongLongInt(i64::from(times_cut_short)));
    properties.with_headers(headers)
}

/// The topic is the AMQP property `type`, which lapin calls `kind`.
fn properties(message_id: Option<ShortString>, topic: Option<ShortString>) -> BasicProperties {
    let mut properties =
        BasicProperties::default().with_content_type(CONTENT_TYPE.into()).with_delivery_mode(PERSISTENT);
    if let Some(message_id) = message_id {
        properties = properties.with_message_id(message_id);
    }
    if let Some(topic) = topic {
        properties = properties.with_type(topic);
    }
    properties
}

fn truncated(reason: &str) -> &str {
    reason.get(..reason.floor_char_boundary(MAX_REASON_BYTES)).unwrap_or(reason)
}
