//! Several events in one message: what RabbitMQ costs, it costs for each message and hardly for their bytes.
//!
//! A message with one event is CloudEvents' structured mode, one with several its batched mode (CloudEvents
//! specification 1.0.2, JSON event format, section 4).

use std::collections::BTreeMap;
use std::mem;

use lapin::BasicProperties;
use lapin::types::ShortString;
use serde_json::value::RawValue;

use super::message::{self, Message};
use crate::bus::Delivery;
use crate::envelope::{DecodeError, OutgoingEvent};

pub(super) const CONTENT_TYPE: &str = "application/cloudevents-batch+json";

/// Bytes of a message with several events, at most.
const MAX_BYTES: usize = 256 * 1024;

/// An event of a message that came: what it says, and what is stored elsewhere if it fails.
pub(super) struct Unpacked {
    pub(super) event: Result<Delivery, DecodeError>,
    pub(super) original: Original,
}

/// An event as it came. It can be published anew, alone.
pub(super) struct Original {
    pub(super) message_id: Option<ShortString>,
    pub(super) kind: Option<ShortString>,
    /// Which attempt this is, from 1.
    pub(super) attempt: u32,
    pub(super) payload: Vec<u8>,
}

/// Events that go the same way.
#[derive(Default)]
struct Group<'e> {
    events: Vec<&'e OutgoingEvent>,
    places: Vec<usize>,
    bytes: usize,
}

/// Puts events of one topic together, `at_most` so many; with each message come the places of its events among
/// `events`. An event alone is published as if there were no batches.
pub(super) fn pack<'e>(
    events: &'e [OutgoingEvent],
    at_most: usize,
    exchange: &ShortString,
) -> Vec<(Message<'e>, Vec<usize>)> {
    let mut groups = Vec::new();
    let mut open: BTreeMap<(&str, bool), Group<'e>> = BTreeMap::new();
    for (place, event) in events.iter().enumerate() {
        let group = open.entry((&event.topic, event.needs_consumer)).or_default();
        if !group.has_room_for(event, at_most) {
            groups.push(mem::take(group));
        }
        group.add(event, place);
    }
    groups.extend(open.into_values());
    groups.into_iter().filter_map(|group| group.pack(exchange)).collect()
}

impl<'e> Group<'e> {
    fn has_room_for(&self, event: &OutgoingEvent, at_most: usize) -> bool {
        self.events.is_empty() || (self.events.len() < at_most && self.bytes + in_batch(event) <= MAX_BYTES)
    }

    fn add(&mut self, event: &'e OutgoingEvent, place: usize) {
        self.bytes += in_batch(event);
        self.events.push(event);
        self.places.push(place);
    }

    fn pack(self, exchange: &ShortString) -> Option<(Message<'e>, Vec<usize>)> {
        let message = match self.events.as_slice() {
            [] => return None,
            [event] => Message::of_event(event, exchange),
            [first, ..] => Message::of_batch(first, self.array(), exchange),
        };
        Some((message, self.places))
    }

    fn array(&self) -> Vec<u8> {
        let mut array = Vec::with_capacity(self.bytes + 1);
        for event in &self.events {
            array.push(if array.is_empty() { b'[' } else { b',' });
            array.extend_from_slice(event.payload.as_bytes());
        }
        array.push(b']');
        array
    }
}

/// Bytes that an event takes in a batch: its own and a comma.
fn in_batch(event: &OutgoingEvent) -> usize {
    event.payload.len() + 1
}

/// The events of a message, at least one. What cannot be taken apart is one that cannot be read.
pub(super) fn unpack(properties: &BasicProperties, data: Vec<u8>) -> Vec<Unpacked> {
    let attempt = message::attempt(properties);
    if !is_batch(properties, &data) {
        let event = Delivery::parse(&data, attempt);
        return vec![whole(properties, data, attempt, event)];
    }
    let reason = match serde_json::from_slice::<Vec<&RawValue>>(&data) {
        Ok(elements) if elements.is_empty() => "it holds no event".to_owned(),
        Ok(elements) => {
            let kind = properties.kind().as_ref();
            return elements.into_iter().map(|element| part(element, kind, attempt)).collect();
        }
        Err(error) => error.to_string(),
    };
    vec![whole(properties, data, attempt, Err(DecodeError::Batch(reason)))]
}

/// A release that did not know batches put them among the dead letters as what it took them for, a single event. No
/// single event is an array.
fn is_batch(properties: &BasicProperties, data: &[u8]) -> bool {
    let is_declared = properties.content_type().as_ref().is_some_and(|kind| kind.as_str() == CONTENT_TYPE);
    is_declared || data.trim_ascii_start().first() == Some(&b'[')
}

fn part(element: &RawValue, kind: Option<&ShortString>, attempt: u32) -> Unpacked {
    let payload = element.get().as_bytes();
    let event = Delivery::parse(payload, attempt);
    let message_id = event.as_ref().ok().map(|event| event.id.to_string().into());
    let original = Original { message_id, kind: kind.cloned(), attempt, payload: payload.to_vec() };
    Unpacked { event, original }
}

fn whole(
    properties: &BasicProperties,
    payload: Vec<u8>,
    attempt: u32,
    event: Result<Delivery, DecodeError>,
) -> Unpacked {
    let (message_id, kind) = (properties.message_id().clone(), properties.kind().clone());
    Unpacked { event, original: Original { message_id, kind, attempt, payload } }
}
