//! Subscriptions, deliveries, handlers and their outcomes.

use assay_contracts::event::{Event, Topic};
use assay_contracts::ids::{EventId, OrganizationId};
use assay_contracts::json::JsonFault;
use assay_contracts::time::Timestamp;
use assay_platform::runtime::RequestContext;
use assay_platform::telemetry::traces::{self, Span, SpanKind};
use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::envelope::{DecodeError, EncodeError, Envelope, OutgoingEvent};

/// An event delivered to a consumer: at least once, in any order.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Id of the event, the same for each delivery of it: the key of the inbox.
    pub id: EventId,
    /// Name of the topic.
    pub topic: String,
    /// The organization that owns the event's data.
    pub organization_id: OrganizationId,
    /// Time of the event itself, not of the delivery.
    pub occurred_at: Timestamp,
    /// Number of this attempt, from 1. Counts attempts that ended with [`Outcome::Retry`], not those that were cut short
    /// by the end of the process or of the connection.
    pub attempt: u32,
    /// Whether the delivery becomes a dead letter if this attempt fails.
    pub is_last_attempt: bool,
    /// How many earlier deliveries ended with the process or the connection.
    pub(crate) times_cut_short: u32,
    /// Whether the event was parked and returned to the bus after a failure (see `parking`).
    pub(crate) is_returned: bool,
    context: Option<RequestContext>,
    data: Box<RawValue>,
}

/// A queue and its limits. All processes that consume the same queue share its events.
#[derive(Debug, Clone, Copy)]
pub struct Subscription {
    /// Name of the queue without the namespace, as in `scoring-worker.conversation-accepted`.
    pub queue: &'static str,
    /// The topics bound to it.
    pub topics: &'static [Topic],
    /// Most deliveries in one call of the handler.
    pub max_batch: usize,
    /// Most deliveries in flight in this process. On RabbitMQ the prefetch window holds about this number of events, but at
    /// least two messages, each of which may hold several events.
    pub max_in_flight: usize,
}

/// Outcome of one delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Handled now, or in an earlier delivery.
    Done,
    /// Failed; a later attempt may succeed.
    Retry {
        /// Shown to operators.
        reason: String,
    },
    /// No attempt can succeed: the delivery becomes a dead letter.
    Reject {
        /// Shown to operators.
        reason: String,
    },
    /// Must not become a dead letter yet, although no attempt is left: the cause is an outage, or the handler could not record
    /// that it gives up. Attempted again later; the attempt is not counted.
    Postpone {
        /// Shown to operators.
        reason: String,
    },
}

/// The work of a consumer.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Handles a batch and returns one outcome for each delivery, in the same order. The bus sets no deadline: the
    /// handler sets its own. Work that computes or blocks runs in `platform::runtime::blocking`.
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome>;

    /// Called before a delivery with a valid envelope becomes a dead letter, because it was rejected, its last attempt failed or the
    /// process ended too often while it was handled. The handler records that the work is not done; it must not do the work.
    ///
    /// # Errors
    /// When this cannot be recorded at the moment: the delivery does not become a dead letter yet.
    async fn give_up(&self, _delivery: &Delivery) -> Result<(), String> {
        Ok(())
    }
}

impl Delivery {
    /// Decodes the data of the envelope.
    ///
    /// # Errors
    /// When the topic or the data is not that of `E`; a redelivery will not help.
    pub fn decode<E: Event>(&self) -> Result<E, DecodeError> {
        if self.topic != E::TOPIC.name {
            return Err(DecodeError::OtherTopic { expected: E::TOPIC.name, found: self.topic.clone() });
        }
        serde_json::from_str(self.data.get()).map_err(|error| DecodeError::Payload {
            topic: self.topic.clone(),
            source: JsonFault::of(&error),
        })
    }

    /// Decodes some fields of the data, whatever the rest holds; `None` when they cannot be read.
    pub fn decode_part<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.data.get()).ok()
    }

    /// Context of the request that caused the event. Handlers continue it with `context.scope(…)`.
    pub fn context(&self) -> Option<RequestContext> {
        self.context.clone()
    }

    /// The event again, to be parked or returned to the bus.
    pub(crate) fn to_outgoing(&self) -> Result<OutgoingEvent, EncodeError> {
        let (context, event) = (self.context.clone(), (self.id, self.topic.as_str()));
        let mut envelope = Envelope::new(context, event, self.occurred_at, self.organization_id, &*self.data);
        envelope.assayreturned = self.is_returned;
        // It was consumed: its topic needs a consumer.
        envelope.encode(true)
    }

    /// Starts a consumer span if the event belongs to a trace; [`Self::context`] then refers to that span.
    pub(super) fn begin_span(&mut self, queue: &'static str) -> Span {
        let Some(context) = &mut self.context else { return Span::default() };
        let Some(parent) = context.traceparent.as_deref() else { return Span::default() };
        let mut span = traces::span(SpanKind::Consumer, Some(parent), || format!("process {}", self.topic));
        if let Some(traceparent) = span.traceparent() {
            context.traceparent = Some(traceparent);
            span.set("messaging.destination.name", queue);
            span.set("messaging.message.id", self.id.to_string());
        }
        span
    }

    /// Bytes of the encoded data, without its envelope.
    pub(super) fn data_bytes(&self) -> usize {
        self.data.get().len()
    }

    /// Parses an envelope; its data is decoded later. `attempt` counts from 1.
    ///
    /// # Errors
    /// When it is not a valid envelope; a redelivery will not help.
    pub fn parse(payload: &[u8], attempt: u32) -> Result<Self, DecodeError> {
        let envelope = Envelope::parse(payload)?;
        let request_id = envelope.requestid.as_deref();
        let context =
            request_id.map(|id| RequestContext::from_headers(Some(id), envelope.traceparent.as_deref()));
        Ok(Self {
            id: envelope.id,
            occurred_at: envelope.occurred_at()?,
            topic: envelope.topic,
            organization_id: envelope.organizationid,
            attempt,
            is_last_attempt: false,
            times_cut_short: 0,
            is_returned: envelope.assayreturned,
            context,
            data: envelope.data,
        })
    }
}
