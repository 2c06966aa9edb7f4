//! Looking at dead letters: each is taken from its queue, and given back unless it was decided otherwise.

use std::time::Duration;

use assay_contracts::time::Timestamp;
use lapin::message::{BasicGetMessage, Delivery};
use lapin::options::{BasicAckOptions, BasicGetOptions, QueueDeclareOptions};
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Connection, ErrorKind};
use tokio::time::{sleep, timeout};

use super::connection::REPLY_SUCCESS;
use super::message::{self, Message};
use super::{Broker, connection};
use crate::bus::dead_letters::{DeadLetter, DeadLetterDecision, DeadLetterError, DeadLetterReview};

/// Where the broker notes whenever it dead-letters a message (RabbitMQ manual, dead letter exchanges, effects).
const HISTORY_HEADER: &str = "x-death";

/// How long the broker is given for putting kept dead letters back.
const RETURN_DEADLINE: Duration = Duration::from_secs(2);
const RETURN_POLL: Duration = Duration::from_millis(20);

impl Broker {
    /// Shows the dead letters of `queue` to `decide`, oldest first, `limit` at most. What is kept goes back to its
    /// place when the connection ends, whatever happens to this process.
    pub(super) async fn review_dead_letters(
        &self,
        queue: &str,
        limit: u64,
        decide: &mut (dyn FnMut(&DeadLetter) -> DeadLetterDecision + Send),
    ) -> Result<DeadLetterReview, DeadLetterError> {
        let connection = self.connector.connect("assay dead letters").await;
        let connection = connection.map_err(DeadLetterError::Unavailable)?;
        let review = self.review_on(&connection, queue, limit, decide).await;
        if let Ok(review) = &review {
            self.await_return(&connection, queue, review).await;
        }
        connection::close(&connection).await;
        review
    }

    /// The broker gives back what was kept a little after it was told to. Whoever looks again must find it.
    async fn await_return(&self, connection: &Connection, queue: &str, review: &DeadLetterReview) {
        let kept = review.total - review.retried - review.dropped;
        let returned = async {
            let channel = connection.create_channel().await.map_err(unavailable)?;
            while count(&channel, self.names.dead_letter_queue(queue), queue).await? < kept {
                sleep(RETURN_POLL).await;
            }
            Ok::<_, DeadLetterError>(())
        };
        // Somebody else may be looking at them, or have taken some away.
        if !matches!(timeout(RETURN_DEADLINE, returned).await, Ok(Ok(()))) {
            tracing::debug!(queue, "dead letters that were kept are not back yet");
        }
    }

    async fn review_on(
        &self,
        connection: &Connection,
        queue: &str,
        limit: u64,
        decide: &mut (dyn FnMut(&DeadLetter) -> DeadLetterDecision + Send),
    ) -> Result<DeadLetterReview, DeadLetterError> {
        let channel = connection.create_channel().await.map_err(unavailable)?;
        let dead_letters = self.names.dead_letter_queue(queue);
        let total = count(&channel, dead_letters.clone(), queue).await?;
        let mut review = DeadLetterReview { total, ..DeadLetterReview::default() };
        // The count is that of the beginning: what is retried and fails again is not seen twice.
        while review.seen < total.min(limit) {
            let taken = channel.basic_get(dead_letters.clone(), BasicGetOptions::default()).await;
            let Some(BasicGetMessage { delivery, .. }) = taken.map_err(unavailable)? else { break };
            review.seen += 1;
            match decide(&describe(&delivery)) {
                DeadLetterDecision::Keep => continue,
                DeadLetterDecision::Retry => {
                    self.deliver_again(queue, &delivery).await?;
                    review.retried += 1;
                }
                DeadLetterDecision::Drop => review.dropped += 1,
            }
            acknowledged(delivery.acker.ack(BasicAckOptions::default()).await)?;
        }
        // Gives back what is not acknowledged.
        channel.close(REPLY_SUCCESS, "OK".into()).await.map_err(unavailable)?;
        Ok(review)
    }

    async fn deliver_again(&self, queue: &str, delivery: &Delivery) -> Result<(), DeadLetterError> {
        let message_id = delivery.properties.message_id().clone();
        let kind = delivery.properties.kind().clone();
        let properties = message::properties(message_id, kind);
        let again = Message::to_queue(self.names.queue(queue), &delivery.data, properties);
        let sent = self.publisher.send(&[again]).await;
        sent.into_iter().collect::<Result<(), _>>().map_err(|error| match error {
            super::SendError::Unavailable(reason) => DeadLetterError::Unavailable(reason),
            super::SendError::Unroutable => DeadLetterError::UnknownQueue(queue.to_owned()),
        })
    }
}

/// Asks for a queue without making it: a mistyped name must not become one.
async fn count(channel: &Channel, dead_letters: ShortString, queue: &str) -> Result<u64, DeadLetterError> {
    let options = QueueDeclareOptions::durable().passive();
    match channel.queue_declare(dead_letters, options, FieldTable::default()).await {
        Ok(declared) => Ok(u64::from(declared.message_count())),
        Err(error) if is_not_found(&error) => Err(DeadLetterError::UnknownQueue(queue.to_owned())),
        Err(error) => Err(unavailable(error)),
    }
}

fn is_not_found(error: &lapin::Error) -> bool {
    matches!(error.kind(), ErrorKind::ProtocolError(error)
        if *error.kind() == AMQPErrorKind::Soft(AMQPSoftError::NOTFOUND))
}

/// lapin answers `false` without telling the broker when the channel has failed since the delivery came.
fn acknowledged(result: lapin::Result<bool>) -> Result<(), DeadLetterError> {
    if result.map_err(unavailable)? {
        return Ok(());
    }
    let reason = "a dead letter was decided on, but stays: the connection was lost meanwhile; look again";
    Err(DeadLetterError::Unavailable(reason.to_owned()))
}

fn unavailable(error: lapin::Error) -> DeadLetterError {
    DeadLetterError::Unavailable(error.to_string())
}

fn describe(delivery: &Delivery) -> DeadLetter {
    let properties = &delivery.properties;
    let text = |value: &Option<ShortString>| value.as_ref().map(ToString::to_string);
    let failed_at = message::integer_header(properties, message::FAILED_AT_HEADER);
    DeadLetter {
        event_id: text(properties.message_id()),
        topic: text(properties.kind()),
        reason: reason(properties),
        attempt: message::attempt(properties),
        failed_at: failed_at.map(Timestamp::saturating_from_millis),
        payload: delivery.data.clone(),
    }
}

/// Our own reason goes with messages that we put there, and those carry no history of the broker's.
fn reason(properties: &BasicProperties) -> String {
    match broker_reason(properties).as_deref() {
        Some("delivery_limit") => {
            "its consumers ended or lost their connection each time they had it".to_owned()
        }
        Some(other) => format!("given up by the broker: {other}"),
        None => text_header(properties.headers().as_ref(), message::REASON_HEADER)
            .unwrap_or_else(|| "unknown".to_owned()),
    }
}

/// The last entry of a message's history comes first in it.
fn broker_reason(properties: &BasicProperties) -> Option<String> {
    let AMQPValue::FieldArray(deaths) = properties.headers().as_ref()?.inner().get(HISTORY_HEADER)? else {
        return None;
    };
    let AMQPValue::FieldTable(last) = deaths.as_slice().first()? else { return None };
    text_header(Some(last), "reason")
}

fn text_header(table: Option<&FieldTable>, name: &str) -> Option<String> {
    match table?.inner().get(name)? {
        AMQPValue::LongString(text) => Some(text.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_letter_is_gone_only_when_the_broker_was_told() {
        assert!(acknowledged(Ok(true)).is_ok());
        assert!(matches!(acknowledged(Ok(false)), Err(DeadLetterError::Unavailable(_))));
        let lost =
            acknowledged(Err(ErrorKind::InvalidConnectionState(lapin::ConnectionState::Closed).into()));
        assert!(matches!(lost, Err(DeadLetterError::Unavailable(_))));
    }
}
