//! Review of dead letters: each is fetched from its queue, and requeued unless it is retried or dropped.

use std::time::Duration;

use assay_contracts::time::Timestamp;
use lapin::message::{BasicGetMessage, Delivery};
use lapin::options::{BasicAckOptions, BasicGetOptions, QueueDeclareOptions};
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Connection, ErrorKind};
use tokio::time::{sleep, timeout};

use super::RabbitBus;
use super::batch::{UnpackedEvent, unpack};
use super::connection;
use super::connection::REPLY_SUCCESS;
use super::message::{self, Failure, Message, Original};
use super::publisher::SendError;
use crate::bus::dead_letters::{DeadLetter, DeadLetterDecision, DeadLetterError, DeadLetterReview};

/// The header in which the broker lists how often and why it dead-lettered the message, most recent reason first.
const HISTORY_HEADER: &str = "x-death";

/// For the broker to requeue kept dead letters.
const REQUEUE_DEADLINE: Duration = Duration::from_secs(10);
const REQUEUE_POLL_INTERVAL: Duration = Duration::from_millis(20);

impl RabbitBus {
    /// Calls `decide` for each event in the dead-letter queue of `queue`, oldest first, `limit` at most. Kept ones stay unacknowledged, so
    /// that the broker requeues them when the connection ends, even if this process dies.
    pub(in crate::bus) async fn review_dead_letters(
        &self,
        queue: &str,
        limit: u64,
        decide: &mut (dyn FnMut(&DeadLetter) -> DeadLetterDecision + Send),
    ) -> Result<DeadLetterReview, DeadLetterError> {
        let connection = self.broker.connector.connect("assay dead letters").await;
        let connection = connection.map_err(DeadLetterError::Unavailable)?;
        let reviewed = self.review_on(&connection, queue, limit, decide).await;
        if let Ok((_, remaining)) = &reviewed {
            self.wait_until_requeued(&connection, queue, *remaining).await;
        }
        connection::close(&connection).await;
        reviewed.map(|(review, _)| review)
    }

    /// The broker requeues asynchronously. The next review must find the kept dead letters.
    async fn wait_until_requeued(&self, connection: &Connection, queue: &str, messages: u64) {
        let requeued = async {
            let channel = connection.create_channel().await.map_err(unavailable)?;
            let dead_letters = self.broker.names.dead_letter_queue(queue);
            while count_messages(&channel, dead_letters.clone(), queue).await? < messages {
                sleep(REQUEUE_POLL_INTERVAL).await;
            }
            Ok::<_, DeadLetterError>(())
        };
        // Another review may hold some of them, or have removed some.
        if !matches!(timeout(REQUEUE_DEADLINE, requeued).await, Ok(Ok(()))) {
            tracing::debug!(queue, "kept dead letters are not requeued yet");
        }
    }

    /// Returns the counts, and the number of messages that remain.
    async fn review_on(
        &self,
        connection: &Connection,
        queue: &str,
        limit: u64,
        decide: &mut (dyn FnMut(&DeadLetter) -> DeadLetterDecision + Send),
    ) -> Result<(DeadLetterReview, u64), DeadLetterError> {
        let channel = connection.create_channel().await.map_err(unavailable)?;
        let dead_letters = self.broker.names.dead_letter_queue(queue);
        count_messages(&channel, dead_letters.clone(), queue).await?;
        let mut next = fetch(&channel, &dead_letters).await?;
        // Not more messages than at the beginning: events that fail again or are split during the review come after them.
        let messages = next.as_ref().map_or(0, |first| u64::from(first.message_count) + 1);
        let mut review = DeadLetterReview { total: messages, ..DeadLetterReview::default() };
        let mut remaining = messages;
        for number in 0..messages {
            if review.seen >= limit {
                break;
            }
            if number > 0 {
                next = fetch(&channel, &dead_letters).await?;
            }
            let Some(BasicGetMessage { delivery, .. }) = next.take() else { break };
            let Delivery { properties, data, acker, .. } = delivery;
            let events = unpack_events(&properties, data);
            review.total += events.len() as u64 - 1;
            let decisions = review.decide(&events, limit, decide);
            if decisions.iter().all(|decision| *decision == DeadLetterDecision::Keep) {
                continue;
            }
            remaining += self.apply(queue, &events, &decisions).await?;
            check_acked(acker.ack(BasicAckOptions::default()).await)?;
            remaining -= 1;
        }
        // Requeues unacknowledged messages.
        channel.close(REPLY_SUCCESS, "OK".into()).await.map_err(unavailable)?;
        Ok((review, remaining))
    }

    /// Applies the decisions on the events of one message: publishes each kept or retried event in a separate message,
    /// so that the original can be acknowledged. Returns the number of kept events.
    async fn apply(
        &self,
        queue: &str,
        events: &[ReviewedEvent],
        decisions: &[DeadLetterDecision],
    ) -> Result<u64, DeadLetterError> {
        let dead_letters = self.broker.names.dead_letter_queue(queue);
        let mut messages = Vec::new();
        let mut kept = 0;
        for (event, decision) in events.iter().zip(decisions) {
            match decision {
                DeadLetterDecision::Keep => {
                    messages.push(event.to_message(dead_letters.clone()));
                    kept += 1;
                }
                DeadLetterDecision::Retry => {
                    messages.push(Message::of_original(&event.original, self.broker.names.queue(queue)));
                }
                DeadLetterDecision::Drop => {}
            }
        }
        let sent = self.broker.publisher.send(&messages).await;
        sent.into_iter().collect::<Result<(), _>>().map_err(|error| match error {
            SendError::Unavailable(reason) | SendError::Refused(reason) => {
                DeadLetterError::Unavailable(reason)
            }
            SendError::Unroutable => DeadLetterError::UnknownQueue(queue.to_owned()),
        })?;
        Ok(kept)
    }
}

impl DeadLetterReview {
    /// Decides on each event of a message. Events beyond the limit are kept.
    fn decide(
        &mut self,
        events: &[ReviewedEvent],
        limit: u64,
        decide: &mut (dyn FnMut(&DeadLetter) -> DeadLetterDecision + Send),
    ) -> Vec<DeadLetterDecision> {
        let mut decisions = Vec::with_capacity(events.len());
        for event in events {
            if self.seen >= limit {
                decisions.push(DeadLetterDecision::Keep);
                continue;
            }
            let decision = decide(&event.dead_letter);
            self.seen += 1;
            match decision {
                DeadLetterDecision::Keep => {}
                DeadLetterDecision::Retry => self.retried += 1,
                DeadLetterDecision::Drop => self.dropped += 1,
            }
            decisions.push(decision);
        }
        decisions
    }
}

/// An event of a dead-lettered message, as it is shown and as it was published.
struct ReviewedEvent {
    dead_letter: DeadLetter,
    original: Original,
}

impl ReviewedEvent {
    /// The dead letter again, in a separate message.
    fn to_message(&self, dead_letters: ShortString) -> Message<'_> {
        let failure = Failure {
            reason: &self.dead_letter.reason,
            failed_at_millis: self.dead_letter.failed_at.map(Timestamp::as_millis),
            attempt: self.dead_letter.attempt,
            times_cut_short: 0,
        };
        Message::of_failed(&self.original, dead_letters, &failure)
    }
}

/// The events of a message, at least one; several when the broker dead-lettered a batch.
fn unpack_events(properties: &BasicProperties, data: Vec<u8>) -> Vec<ReviewedEvent> {
    let failed_at = message::integer_header(properties, message::FAILED_AT_HEADER);
    let events = unpack(properties, data);
    let reason = message_reason(properties);
    let reason = match events.len() {
        1 => reason,
        count => format!("{reason} (one of {count} events in one message)"),
    };
    let reviewed = |UnpackedEvent { original, .. }: UnpackedEvent| ReviewedEvent {
        dead_letter: DeadLetter {
            event_id: original.message_id.as_ref().map(ToString::to_string),
            topic: original.topic.as_ref().map(ToString::to_string),
            reason: reason.clone(),
            attempt: original.attempt,
            failed_at: failed_at.map(Timestamp::saturating_from_millis),
            payload: original.payload.clone(),
        },
        original,
    };
    events.into_iter().map(reviewed).collect()
}

/// The oldest message, and how many are ready behind it.
async fn fetch(
    channel: &Channel,
    dead_letters: &ShortString,
) -> Result<Option<BasicGetMessage>, DeadLetterError> {
    channel.basic_get(dead_letters.clone(), BasicGetOptions::default()).await.map_err(unavailable)
}

/// The number of ready messages. A lower bound: RabbitMQ counts 0 when a quorum queue does not answer within 250 ms.
/// Declares the queue passively: a mistyped name must not create one.
async fn count_messages(
    channel: &Channel,
    dead_letters: ShortString,
    queue: &str,
) -> Result<u64, DeadLetterError> {
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

/// lapin returns `false`, without telling the broker, when the channel has failed since the delivery.
fn check_acked(result: lapin::Result<bool>) -> Result<(), DeadLetterError> {
    if result.map_err(unavailable)? {
        return Ok(());
    }
    let reason = "the connection was lost before the decision on a dead letter could be acknowledged: the dead letter is still in its queue";
    Err(DeadLetterError::Unavailable(reason.to_owned()))
}

fn unavailable(error: lapin::Error) -> DeadLetterError {
    DeadLetterError::Unavailable(error.to_string())
}

/// Why a message was dead-lettered: by the broker, if it has a history, otherwise by a consumer, with our reason header.
fn message_reason(properties: &BasicProperties) -> String {
    match broker_reason(properties).as_deref() {
        Some("delivery_limit") => {
            "its consumers ended or lost their connection each time they had it".to_owned()
        }
        Some(other) => format!("dead-lettered by the broker: {other}"),
        None => text_header(properties.headers().as_ref(), message::REASON_HEADER)
            .unwrap_or_else(|| "unknown".to_owned()),
    }
}

/// The most recent reason in the broker's history.
fn broker_reason(properties: &BasicProperties) -> Option<String> {
    let AMQPValue::FieldArray(deaths) = properties.headers().as_ref()?.inner().get(HISTORY_HEADER)? else {
        return None;
    };
    let AMQPValue::FieldTable(latest) = deaths.as_slice().first()? else { return None };
    text_header(Some(latest), "reason")
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
    fn ack_on_a_failed_channel_is_an_error() {
        assert!(check_acked(Ok(true)).is_ok());
        assert!(matches!(check_acked(Ok(false)), Err(DeadLetterError::Unavailable(_))));
        let lost = check_acked(Err(ErrorKind::InvalidConnectionState(lapin::ConnectionState::Closed).into()));
        assert!(matches!(lost, Err(DeadLetterError::Unavailable(_))));
    }
}
