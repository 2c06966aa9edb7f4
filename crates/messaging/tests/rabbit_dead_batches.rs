//! Batches that the broker dead-letters: each event is a separate dead letter.

mod support;

use anyhow::Result;
use assay_contracts::event::{ConversationAccepted, Event as _};
use assay_messaging::{Bus, DeadLetter, DeadLetterDecision, DeadLetterReview, OutgoingEvent};

use support::wire::Wire;
use support::{ACCEPTED, Running, accepted, eventually, rabbit_with};

const DEAD: &str = "scorer.conversation-accepted.dead";
const SINGLE: &str = "application/cloudevents+json";

#[tokio::test]
async fn review_lists_each_event_and_keeps_the_batch() -> Result<()> {
    let dead_batch = DeadBatch::of(5).await?;
    let (review, letters) = dead_batch.list(10).await?;
    assert_eq!(review, DeadLetterReview { total: 5, seen: 5, retried: 0, dropped: 0 });
    for (letter, event) in letters.iter().zip(&dead_batch.events) {
        assert_eq!(letter.event_id, Some(event.id().to_string()));
        assert_eq!(letter.topic.as_deref(), Some(ConversationAccepted::TOPIC.name));
        assert_eq!(String::from_utf8(letter.payload.clone())?, event.payload());
        assert!(letter.reason.starts_with("its consumers ended"), "{}", letter.reason);
        assert!(letter.reason.ends_with("(one of 5 events in one message)"), "{}", letter.reason);
        assert_eq!((letter.attempt, letter.failed_at), (1, None));
    }
    let (review, some) = dead_batch.list(2).await?;
    assert_eq!(review, DeadLetterReview { total: 5, seen: 2, retried: 0, dropped: 0 });
    assert_eq!(some, letters[..2]);
    assert_eq!(dead_batch.list(10).await?.1, letters);
    assert_eq!(dead_batch.wire.waiting(DEAD).await?, 1);
    Ok(())
}

#[tokio::test]
async fn retried_events_are_delivered_singly() -> Result<()> {
    let dead_batch = DeadBatch::of(3).await?;
    let review = dead_batch.decide(|_| DeadLetterDecision::Retry).await?;
    assert_eq!(review, DeadLetterReview { total: 3, seen: 3, retried: 3, dropped: 0 });
    assert_eq!(dead_batch.wire.waiting(DEAD).await?, 0);
    assert_eq!(dead_batch.wire.waiting(ACCEPTED.queue).await?, 3);
    let (handler, consumer) = Running::done(&dead_batch.bus, ACCEPTED);
    handler.wait_for_all(&dead_batch.events).await?;
    consumer.stop().await
}

#[tokio::test]
async fn decision_on_one_event_leaves_the_others() -> Result<()> {
    let dead_batch = DeadBatch::of(5).await?;
    let (_, before) = dead_batch.list(10).await?;
    let (retried, dropped) = (before[1].clone(), before[3].clone());
    let review = dead_batch.decide(|letter| match letter {
        letter if letter == &retried => DeadLetterDecision::Retry,
        letter if letter == &dropped => DeadLetterDecision::Drop,
        _ => DeadLetterDecision::Keep,
    });
    assert_eq!(review.await?, DeadLetterReview { total: 5, seen: 5, retried: 1, dropped: 1 });
    let again = dead_batch.wire.take(ACCEPTED.queue).await?;
    assert_eq!((again.content_type.as_deref(), again.message_id), (Some(SINGLE), retried.event_id));
    assert_eq!(dead_batch.wire.waiting(ACCEPTED.queue).await?, 0);
    let (review, after) = dead_batch.list(10).await?;
    assert_eq!(review.total, 3);
    assert_eq!(after, [before[0].clone(), before[2].clone(), before[4].clone()]);
    Ok(())
}

#[tokio::test]
async fn events_beyond_the_limit_are_kept() -> Result<()> {
    let dead_batch = DeadBatch::of(4).await?;
    let review = dead_batch.bus.review_dead_letters(ACCEPTED.queue, 1, |_| DeadLetterDecision::Drop).await?;
    assert_eq!(review, DeadLetterReview { total: 4, seen: 1, retried: 0, dropped: 1 });
    assert_eq!(dead_batch.list(10).await?.1.len(), 3);
    Ok(())
}

/// A bus whose broker has dead-lettered one message with several events.
struct DeadBatch {
    bus: Bus,
    wire: Wire,
    events: Vec<OutgoingEvent>,
}

impl DeadBatch {
    async fn of(events: usize) -> Result<Self> {
        let (bus, wire, _) = rabbit_with(ACCEPTED).await?;
        let events: Vec<OutgoingEvent> = (0..events).map(|_| accepted()).collect();
        assert!(bus.publish(&events).await.iter().all(Result::is_ok));
        eventually("the broker to dead-letter it", || async {
            wire.exhaust(ACCEPTED.queue).await?;
            Ok(wire.waiting(DEAD).await? == 1)
        })
        .await?;
        Ok(Self { bus, wire, events })
    }

    async fn list(&self, limit: u64) -> Result<(DeadLetterReview, Vec<DeadLetter>)> {
        let mut letters = Vec::new();
        let review = self.bus.review_dead_letters(ACCEPTED.queue, limit, |letter| {
            letters.push(letter.clone());
            DeadLetterDecision::Keep
        });
        Ok((review.await?, letters))
    }

    async fn decide(
        &self,
        decide: impl FnMut(&DeadLetter) -> DeadLetterDecision + Send,
    ) -> Result<DeadLetterReview> {
        Ok(self.bus.review_dead_letters(ACCEPTED.queue, 10, decide).await?)
    }
}
