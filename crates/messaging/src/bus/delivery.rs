//! What a consumer is given and what it answers.

use assay_contracts::event::Event;
use assay_contracts::ids::{EventId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_platform::runtime::RequestContext;
use assay_platform::telemetry::traces::{self, Span, SpanKind};
use async_trait::async_trait;
use serde_json::value::RawValue;

use crate::envelope::{DecodeError, IncomingEvent};

/// An event in the hands of a consumer. It may come more than once, and in any order.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The same for each delivery of one event: the key of the inbox.
    pub id: EventId,
    /// Name of the topic.
    pub topic: String,
    /// The tenant it belongs to.
    pub organization_id: OrganizationId,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// Which attempt this is, from 1. Counts the attempts that ended with [`Outcome::Retry`], and not those that
    /// ended with the process or the connection.
    pub attempt: u32,
    context: Option<RequestContext>,
    data: Box<RawValue>,
}

/// What became of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is handled, or was before.
    Done,
    /// It could not be handled this time; a later attempt may succeed.
    Retry {
        /// Why, for operators.
        reason: String,
    },
    /// No attempt will ever succeed: it becomes a dead letter.
    Reject {
        /// Why, for operators.
        reason: String,
    },
}

/// A consumer's work.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Handles deliveries together and answers one outcome for each, in the same order. It owns its deadlines: the
    /// bus waits for it. Work that computes or blocks belongs into `platform::runtime::blocking`.
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome>;
}

impl Delivery {
    /// The event.
    ///
    /// # Errors
    /// When it is of another topic or its payload has another shape; delivering it again will not help.
    pub fn decode<E: Event>(&self) -> Result<E, DecodeError> {
        if self.topic != E::TOPIC.name {
            return Err(DecodeError::OtherTopic { expected: E::TOPIC.name, found: self.topic.clone() });
        }
        serde_json::from_str(self.data.get())
            .map_err(|source| DecodeError::Payload { topic: self.topic.clone(), source })
    }

    /// The request that led to the event, to be continued (`context.scope(…)`) by what the consumer does.
    pub fn context(&self) -> Option<RequestContext> {
        self.context.clone()
    }

    /// Begins the span of its handling, where it belongs to a trace; what the consumer does for it follows from there.
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

    /// Reads what a bus delivered: an envelope, of which the payload is decoded later. `attempt` counts from 1.
    ///
    /// # Errors
    /// When it is no envelope of ours; delivering it again will not help.
    pub fn parse(payload: &[u8], attempt: u32) -> Result<Self, DecodeError> {
        let event = IncomingEvent::parse(payload)?;
        let context = event
            .request_id
            .as_deref()
            .map(|request_id| RequestContext::from_headers(Some(request_id), event.traceparent.as_deref()));
        Ok(Self {
            id: event.id,
            topic: event.topic,
            organization_id: event.organization_id,
            occurred_at: event.occurred_at,
            attempt,
            context,
            data: event.data,
        })
    }
}
