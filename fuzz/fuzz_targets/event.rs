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
        is_written_as_read::<ConversationAccepted>(&delivery),
        is_written_as_read::<ConversationEvaluated>(&delivery),
        is_written_as_read::<ConversationDeleted>(&delivery),
        is_written_as_read::<ConversationsExpired>(&delivery),
        is_written_as_read::<EvaluationDeleted>(&delivery),
        is_written_as_read::<ExportRequested>(&delivery),
        is_written_as_read::<AgentCreated>(&delivery),
        is_written_as_read::<EvaluationAnnounced>(&delivery),
        is_written_as_read::<EvaluationRetracted>(&delivery),
        is_written_as_read::<ExportFinished>(&delivery),
    ];
    assert!(kinds.iter().filter(|is_one| **is_one).count() <= 1, "two kinds of event in one");
});

/// Whether it is an event of this kind; if so, it is the same after it was written and read again.
fn is_written_as_read<E: Event + PartialEq + Debug>(delivery: &Delivery) -> bool {
    let Ok(event) = delivery.decode::<E>() else { return false };
    let written = OutgoingEvent::new(delivery.id, delivery.occurred_at, &event).expect("what was read is JSON");
    let again = Delivery::parse(written.payload().as_bytes(), 1).expect("an envelope of ours");
    assert_eq!((again.id, &again.topic), (delivery.id, &delivery.topic));
    assert_eq!(again.occurred_at, delivery.occurred_at);
    assert_eq!(again.decode::<E>().expect("an event of ours"), event);
    true
}
