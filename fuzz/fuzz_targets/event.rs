//! Any bytes from the bus: an event of ours, which is written again as it was read, or an error.

#![no_main]

use std::fmt::Debug;

use assay_contracts::notification::{EvaluationAnnounced, EvaluationRetracted, ExportFinished};
use assay_contracts::event::{
    AgentCreated, ConversationAccepted, ConversationDeleted, ConversationEvaluated, ConversationsExpired,
    EvaluationDeleted, Event, ExportRequested,
};
use assay_messaging::{Delivery, OutgoingEvent};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(delivery) = Delivery::parse(data, 1) else { return };
    let kinds = [
        decodes_and_round_trips::<ConversationAccepted>(&delivery),
        decodes_and_round_trips::<ConversationEvaluated>(&delivery),
        decodes_and_round_trips::<ConversationDeleted>(&delivery),
        decodes_and_round_trips::<ConversationsExpired>(&delivery),
        decodes_and_round_trips::<EvaluationDeleted>(&delivery),
        decodes_and_round_trips::<ExportRequested>(&delivery),
        decodes_and_round_trips::<AgentCreated>(&delivery),
        decodes_and_round_trips::<EvaluationAnnounced>(&delivery),
        decodes_and_round_trips::<EvaluationRetracted>(&delivery),
        decodes_and_round_trips::<ExportFinished>(&delivery),
    ];
    assert!(kinds.iter().filter(|is_one| **is_one).count() <= 1, "two kinds of event in one");
});

/// Whether it is an event of this kind. If so, asserts that it is the same after it was written and read again.
fn decodes_and_round_trips<E: Event + PartialEq + Debug>(delivery: &Delivery) -> bool {
    let Ok(event) = delivery.decode::<E>() else { return false };
    let written = OutgoingEvent::new(delivery.id, delivery.occurred_at, &event).expect("what was read is JSON");
    let again = Delivery::parse(written.payload().as_bytes(), 1).expect("an envelope of ours");
    assert_eq!((again.id, &again.topic), (delivery.id, &delivery.topic));
    assert_eq!(again.occurred_at, delivery.occurred_at);
    assert_eq!(again.decode::<E>().expect("an event of ours"), event);
    true
}
