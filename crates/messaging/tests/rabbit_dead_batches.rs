//! What becomes of a message with several events that the broker gives up: each event is a dead letter.

mod support;

use anyhow::Result;
use assay_contracts::event::{ConversationAccepted, Event as _};
use assay_messaging::{Bus, DeadLetter, DeadLetterDecision, DeadLetterReview, OutgoingEvent};

use support::wire::Wire;
use support::{ACCEPTED, Running, Scripted, accepted, declare, eventually, rabbit_settings};

const DEAD: &str = "scorer.conversation-accepted.dead";
const SINGLE: &str = "application/cloudevents+json";

#[tokio::test]
async fn each_event_is_shown_with_the_reason_and_stays_where_it_is() -> Result<()> {
    let given_up = GivenUp::batch_of(5).await?;
    let (review, letters) = given_up.look(10).await?;
    assert_eq!(review, DeadLetterReview { total: 5, seen: 5, retried: 0, dropped: 0 });
    for (letter, event) in letters.iter().zip(&given_up.events) {
        assert_eq!(letter.event_id, Some(event.id().to_string()));
        assert_eq!(letter.topic.as_deref(), Some(ConversationAccepted::TOPIC.name));
        assert_eq!(String::from_utf8(letter.payload.clone())?, event.payload());
        assert!(letter.reason.starts_with("its consumers ended"), "{}", letter.reason);
        assert!(letter.reason.ends_with("(one of 5 events in one message)"), "{}", letter.reason);
        assert_eq!((letter.attempt, letter.failed_at), (1, None));
    }
    let (review, some) = given_up.look(2).await?;
    assert_eq!(review, DeadLetterReview { total: 5, seen: 2, retried: 0, dropped: 0 });
    assert_eq!(some, letters[..2]);
    assert_eq!(given_up.look(10).await?.1, letters);
    assert_eq!(given_up.wire.waiting(DEAD).await?, 1);
    Ok(())
}

#[tokio::test]
async fn those_that_are_retried_are_delivered_alone() -> Result<()> {
    let given_up = GivenUp::batch_of(3).await?;
    let review = given_up.decide(|_| DeadLetterDecision::Retry).await?;
    assert_eq!(review, DeadLetterReview { total: 3, seen: 3, retried: 3, dropped: 0 });
    assert_eq!(given_up.wire.waiting(DEAD).await?, 0);
    assert_eq!(given_up.wire.waiting(ACCEPTED.queue).await?, 3);
    let handler = Scripted::done();
    let consumer = Running::consumer(&given_up.bus, ACCEPTED, handler.clone());
    handler.wait_for_all(&given_up.events).await?;
    consumer.stop().await
}

#[tokio::test]
async fn a_decision_on_one_of_them_leaves_the_others() -> Result<()> {
    let given_up = GivenUp::batch_of(5).await?;
    let (_, before) = given_up.look(10).await?;
    let (retried, dropped) = (before[1].clone(), before[3].clone());
    let review = given_up.decide(|letter| match letter {
        letter if letter == &retried => DeadLetterDecision::Retry,
        letter if letter == &dropped => DeadLetterDecision::Drop,
        _ => DeadLetterDecision::Keep,
    });
    assert_eq!(review.await?, DeadLetterReview { total: 5, seen: 5, retried: 1, dropped: 1 });
    let again = given_up.wire.take(ACCEPTED.queue).await?;
    assert_eq!((again.content_type.as_deref(), again.message_id), (Some(SINGLE), retried.event_id));
    assert_eq!(given_up.wire.waiting(ACCEPTED.queue).await?, 0);
    let (review, after) = given_up.look(10).await?;
    assert_eq!(review.total, 3);
    assert_eq!(after, [before[0].clone(), before[2].clone(), before[4].clone()]);
    Ok(())
}

#[tokio::test]
async fn a_decision_reaches_only_those_that_were_looked_at() -> Result<()> {
    let given_up = GivenUp::batch_of(4).await?;
    let review = given_up.bus.review_dead_letters(ACCEPTED.queue, 1, |_| DeadLetterDecision::Drop).await?;
    assert_eq!(review, DeadLetterReview { total: 4, seen: 1, retried: 0, dropped: 1 });
    assert_eq!(given_up.look(10).await?.1.len(), 3);
    Ok(())
}

/// A consumer of a release without batches rejects them, under the name of a single event.
#[tokio::test]
async fn a_batch_that_an_older_consumer_rejected_is_taken_apart() -> Result<()> {
    let given_up = GivenUp::batch_of(2).await?;
    let batch = given_up.wire.take(DEAD).await?;
    given_up.wire.put(DEAD, SINGLE, &batch.body).await?;
    let (_, letters) = given_up.look(10).await?;
    let ids: Vec<Option<String>> = letters.into_iter().map(|letter| letter.event_id).collect();
    assert_eq!(ids, given_up.events.iter().map(|event| Some(event.id().to_string())).collect::<Vec<_>>());
    Ok(())
}

/// A bus on whose queue the broker has given up one message with several events.
struct GivenUp {
    bus: Bus,
    wire: Wire,
    events: Vec<OutgoingEvent>,
}

impl GivenUp {
    async fn batch_of(events: usize) -> Result<Self> {
        let settings = rabbit_settings(assay_testkit::services::rabbit()?)?;
        let (bus, wire) = (Bus::open(&settings)?, Wire::open(&settings).await?);
        declare(&bus, ACCEPTED).await?;
        let events: Vec<OutgoingEvent> = (0..events).map(|_| accepted()).collect();
        assert!(bus.publish(&events).await.iter().all(Result::is_ok));
        eventually("the broker to give it up", || async {
            wire.exhaust(ACCEPTED.queue).await?;
            Ok(wire.waiting(DEAD).await? == 1)
        })
        .await?;
        Ok(Self { bus, wire, events })
    }

    async fn look(&self, limit: u64) -> Result<(DeadLetterReview, Vec<DeadLetter>)> {
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
