//! Turns events from the bus into messages to the subscribed endpoints.

use std::sync::Arc;

use assay_contracts::event::Event;
use assay_contracts::notification::{EvaluationAnnounced, EvaluationRetracted, ExportFinished};
use assay_messaging::{DecodeError, Delivery};
use assay_platform::db::DatabaseError;
use assay_platform::runtime::now;
use tokio::sync::Notify;

use crate::domain::message::Notification;
use crate::domain::schedule::Schedule;
use crate::store::{ReceivedEvent, WebhookStore};

pub(crate) struct EnqueueMessages {
    pub(crate) store: WebhookStore,
    pub(crate) schedule: Schedule,
    pub(crate) sender_wakeup: Arc<Notify>,
}

impl EnqueueMessages {
    /// Stores the messages for a batch of events, all or none. An event that was handled before adds nothing.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) async fn run(&self, received: Vec<ReceivedEvent>) -> Result<(), DatabaseError> {
        let now = now();
        self.store.enqueue(received, self.schedule.first_due(now), now).await?;
        self.sender_wakeup.notify_one();
        Ok(())
    }
}

/// Decodes a delivery of the bus.
///
/// # Errors
/// When its event is not one that this role consumes, or is malformed.
pub(crate) fn decode_event(delivery: &Delivery) -> Result<ReceivedEvent, DecodeError> {
    match delivery.topic.as_str() {
        topic if topic == EvaluationRetracted::TOPIC.name => {
            Ok(ReceivedEvent::Retraction(delivery.id, delivery.decode()?))
        }
        topic if topic == ExportFinished::TOPIC.name => {
            Ok(ReceivedEvent::Notification(delivery.id, Notification::Export(delivery.decode()?)))
        }
        // `decode` refuses any other topic.
        _ => {
            let announced: EvaluationAnnounced = delivery.decode()?;
            Ok(ReceivedEvent::Notification(delivery.id, Notification::Evaluation(announced)))
        }
    }
}
