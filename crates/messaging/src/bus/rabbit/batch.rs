//! Several events in one message: RabbitMQ's cost is per message and hardly per byte.
//!
//! A message with one event is CloudEvents' structured mode, one with several its batched mode (CloudEvents
//! specification 1.0.2, JSON event format, section 4).

use std::collections::BTreeMap;
use std::mem;

use assay_contracts::json::JsonFault;
use lapin::BasicProperties;
use lapin::types::ShortString;
use serde_json::value::RawValue;

use super::message::{self, Message, Original};
use crate::bus::delivery::Delivery;
use crate::envelope::{DecodeError, OutgoingEvent};

/// Most bytes of a message with several events.
const MAX_MESSAGE_BYTES: usize = 256 * 1024;

/// An event of a delivered message, and the original that is stored if it fails.
pub(super) struct UnpackedEvent {
    pub(super) event: Result<Delivery, DecodeError>,
    pub(super) original: Original,
}

/// Events with the same routing.
#[derive(Default)]
struct Group<'e> {
    events: Vec<&'e OutgoingEvent>,
    /// The index of each event in the argument of [`pack`].
    positions: Vec<usize>,
    bytes: usize,
}

/// Groups events of one topic, `max_events` to a message. Each message comes with the positions of its events in
/// `events`. A single event is published without a batch.
pub(super) fn pack<'e>(
    events: &'e [OutgoingEvent],
    max_events: usize,
    exchange: &ShortString,
) -> Vec<(Message<'e>, Vec<usize>)> {
    let mut groups = Vec::new();
    // By topic and `needs_consumer`: the routing key and the flag `mandatory` of the message.
    let mut open: BTreeMap<(&str, bool), Group<'e>> = BTreeMap::new();
    for (position, event) in events.iter().enumerate() {
        // In its own message: the header with the count applies to all events of a message.
        if event.times_cut_short > 0 {
            groups.push(Group::of(event, position));
            continue;
        }
        let group = open.entry((&event.topic, event.needs_consumer)).or_default();
        if !group.has_room_for(event, max_events) {
            groups.push(mem::take(group));
        }
        group.add(event, position);
    }
    groups.extend(open.into_values());
    groups.into_iter().filter_map(|group| group.pack(exchange)).collect()
}

impl<'e> Group<'e> {
    fn of(event: &'e OutgoingEvent, position: usize) -> Self {
        let mut group = Self::default();
        group.add(event, position);
        group
    }

    fn has_room_for(&self, event: &OutgoingEvent, max_events: usize) -> bool {
        self.events.is_empty()
            || (self.events.len() < max_events && self.bytes + bytes_in_batch(event) <= MAX_MESSAGE_BYTES)
    }

    fn add(&mut self, event: &'e OutgoingEvent, position: usize) {
        self.bytes += bytes_in_batch(event);
        self.events.push(event);
        self.positions.push(position);
    }

    fn pack(self, exchange: &ShortString) -> Option<(Message<'e>, Vec<usize>)> {
        let message = match self.events.as_slice() {
            [] => return None,
            [event] => Message::of_event(event, exchange),
            [first, ..] => Message::of_batch(first, self.json_array(), exchange),
        };
        Some((message, self.positions))
    }

    fn json_array(&self) -> Vec<u8> {
        let mut array = Vec::with_capacity(self.bytes + 1);
        for event in &self.events {
            array.push(if array.is_empty() { b'[' } else { b',' });
            array.extend_from_slice(event.payload.as_bytes());
        }
        array.push(b']');
        array
    }
}

/// Bytes of an event in a batch, including its comma.
fn bytes_in_batch(event: &OutgoingEvent) -> usize {
    event.payload.len() + 1
}

/// The events of a message, at least one. A malformed batch yields one unreadable event.
pub(super) fn unpack(properties: &BasicProperties, data: Vec<u8>) -> Vec<UnpackedEvent> {
    let attempt = message::attempt(properties);
    let earlier_times_cut_short = message::earlier_times_cut_short(properties);
    let times_cut_short = earlier_times_cut_short.saturating_add(message::delivery_count(properties));
    let unpacked = |mut event: Result<Delivery, DecodeError>, message_id, payload| {
        if let Ok(delivery) = &mut event {
            delivery.times_cut_short = times_cut_short;
        }
        let topic = properties.kind().clone();
        let original =
            Original { message_id, topic, attempt, times_cut_short, earlier_times_cut_short, payload };
        UnpackedEvent { event, original }
    };
    let is_batch =
        properties.content_type().as_ref().is_some_and(|kind| kind.as_str() == message::BATCH_CONTENT_TYPE);
    if !is_batch {
        return vec![unpacked(Delivery::parse(&data, attempt), properties.message_id().clone(), data)];
    }
    let reason = match serde_json::from_slice::<Vec<&RawValue>>(&data) {
        Ok(elements) if elements.is_empty() => "it holds no event".to_owned(),
        Ok(elements) => {
            let unpack_element = |element: &RawValue| {
                let payload = element.get().as_bytes();
                let event = Delivery::parse(payload, attempt);
                let message_id = event.as_ref().ok().map(|event| event.id.to_string().into());
                unpacked(event, message_id, payload.to_vec())
            };
            return elements.into_iter().map(unpack_element).collect();
        }
        Err(error) => JsonFault::of(&error).to_string(),
    };
    vec![unpacked(Err(DecodeError::Batch(reason)), properties.message_id().clone(), data)]
}

#[cfg(test)]
mod tests {
    use assay_contracts::event::ConversationAccepted;
    use assay_platform::runtime::{new_id, now};

    use super::*;

    #[test]
    fn event_that_was_cut_short_has_its_count_in_its_own_message() {
        let accepted =
            ConversationAccepted { organization_id: new_id(), ticket_id: new_id(), accepted_at: now() };
        let events = [0, 2, 0, 3].map(|times_cut_short| OutgoingEvent {
            times_cut_short,
            ..OutgoingEvent::new(new_id(), now(), &accepted).expect("encodes")
        });
        let mut counts: Vec<(usize, u32)> = Vec::new();
        for (message, positions) in pack(&events, 100, &"events".into()) {
            let unpacked = unpack(&message.properties, message.payload.to_vec());
            let found = unpacked.iter().map(|one| one.event.as_ref().expect("parses").times_cut_short);
            counts.extend(positions.into_iter().zip(found));
            assert!(unpacked.len() == 1 || unpacked.iter().all(|one| one.original.times_cut_short == 0));
        }
        counts.sort_unstable();
        assert_eq!(counts, [(0, 0), (1, 2), (2, 0), (3, 3)]);
    }
}
