//! Makes messages of what was announced.

use std::sync::Arc;

use assay_contracts::announcement::{EvaluationAnnounced, EvaluationRetracted, ExportFinished};
use assay_contracts::event::Event;
use assay_messaging::{DecodeError, Delivery};
use assay_platform::db::DatabaseError;
use assay_platform::runtime::now;
use tokio::sync::Notify;

use crate::domain::message::Announcement;
use crate::domain::schedule::Schedule;
use crate::store::{Received, WebhookStore};

/// What announcements are taken in with.
pub(crate) struct Intake {
    pub(crate) store: Arc<dyn WebhookStore>,
    pub(crate) schedule: Schedule,
    /// Wakes the sender.
    pub(crate) news: Arc<Notify>,
}

impl Intake {
    /// Stores the messages that follow from announcements, each once however often its event comes. All of them or, on an
    /// error, none.
    ///
    /// # Errors
    /// When the database refuses.
    pub(crate) async fn take_in(&self, received: Vec<Received>) -> Result<(), DatabaseError> {
        if received.is_empty() {
            return Ok(());
        }
        let now = now();
        self.store.take_in(received, self.schedule.first_due(now), now).await?;
        self.news.notify_one();
        Ok(())
    }
}

/// What a delivery of the bus brings.
///
/// # Errors
/// When it is none of the events that webhooks are made of.
pub(crate) fn decode(delivery: &Delivery) -> Result<Received, DecodeError> {
    match delivery.topic.as_str() {
        topic if topic == EvaluationRetracted::TOPIC.name => {
            let retracted: EvaluationRetracted = delivery.decode()?;
            Ok(Received::Retracted(delivery.id, retracted.ticket_id, retracted.deleted_at))
        }
        topic if topic == ExportFinished::TOPIC.name => {
            Ok(Received::Announced(delivery.id, Announcement::Export(delivery.decode()?)))
        }
        _ => {
            let announced: EvaluationAnnounced = delivery.decode()?;
            Ok(Received::Announced(delivery.id, Announcement::Evaluation(announced)))
        }
    }
}
