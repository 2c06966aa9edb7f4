//! Dead letters: their creation and their review.

mod support;

use anyhow::{Context as _, Result};
use assay_messaging::{
    Bus, DeadLetter, DeadLetterDecision, DeadLetterError, DeadLetterReview, Outcome, Subscription,
};
use assay_platform::runtime::now;
use lapin::options::BasicPublishOptions;
use lapin::{BasicProperties, Connection, ConnectionProperties};

use support::{
    ACCEPTED, Running, Scripted, accepted, eventually, local_bus, publish, rabbit_bus, rabbit_settings,
};

#[tokio::test]
async fn rejected_delivery_is_dead_lettered_with_its_reason() -> Result<()> {
    let bus = rabbit_bus()?;
    let handler = Scripted::new(|_| Outcome::Reject { reason: "unknown kind of author".to_owned() });
    let consumer = Running::consumer(&bus, ACCEPTED, handler.clone());
    let event = accepted();
    let start = now();
    publish(&bus, &event).await?;
    let letter = first_dead_letter(&bus).await?;
    assert_eq!(letter.event_id, Some(event.id().to_string()));
    assert_eq!(letter.topic.as_deref(), Some("conversation.accepted.v1"));
    assert_eq!((letter.reason.as_str(), letter.attempt), ("unknown kind of author", 1));
    assert!(letter.failed_at.is_some_and(|failed_at| failed_at >= start), "{:?}", letter.failed_at);
    consumer.stop().await?;
    assert_eq!(handler.deliveries().len(), 1);
    Ok(())
}

#[tokio::test]
async fn last_failed_attempt_is_dead_lettered() -> Result<()> {
    let bus = rabbit_bus()?;
    let handler = Scripted::new(|_| Outcome::Retry { reason: "busy".to_owned() });
    let consumer = Running::consumer(&bus, ACCEPTED, handler.clone());
    publish(&bus, &accepted()).await?;
    let letter = first_dead_letter(&bus).await?;
    assert_eq!((letter.reason.as_str(), letter.attempt), ("attempt 3 of 3: busy", 3));
    consumer.stop().await?;
    assert_eq!(handler.deliveries().len(), 3);
    Ok(())
}

#[tokio::test]
async fn malformed_message_is_dead_lettered_without_the_handler() -> Result<()> {
    let settings = rabbit_settings(assay_testkit::services::rabbit()?)?;
    let bus = Bus::open(&settings)?;
    let (handler, consumer) = Running::done(&bus, ACCEPTED);
    let event = accepted();
    publish(&bus, &event).await?;

    let properties = ConnectionProperties::default();
    let connection = Connection::connect(assay_testkit::services::rabbit()?, properties).await?;
    let channel = connection.create_channel().await?;
    let queue = format!("{}.{}", settings.namespace, ACCEPTED.queue);
    let options = BasicPublishOptions::default();
    channel
        .basic_publish("".into(), queue.into(), options, b"{\"no\": \"event\"}", BasicProperties::default())
        .await?;

    let letter = first_dead_letter(&bus).await?;
    assert_eq!((letter.event_id, letter.payload), (None, b"{\"no\": \"event\"}".to_vec()));
    assert!(letter.reason.contains("not a CloudEvents 1.0 envelope"), "{}", letter.reason);
    consumer.stop().await?;
    assert_eq!(handler.ids(), [event.id()].into());
    Ok(())
}

#[tokio::test]
async fn review_keeps_dead_letters_in_place() -> Result<()> {
    let bus = with_dead_letters(3).await?;
    let first = letters(&bus, 10).await?;
    let second = letters(&bus, 10).await?;
    assert_eq!(first.len(), 3);
    assert_eq!(first, second);
    assert_eq!(letters(&bus, 2).await?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn dead_letter_can_be_dropped() -> Result<()> {
    let bus = with_dead_letters(3).await?;
    let chosen = letters(&bus, 10).await?[1].event_id.clone();
    let review = bus.review_dead_letters(ACCEPTED.queue, 10, |letter| {
        if letter.event_id == chosen { DeadLetterDecision::Drop } else { DeadLetterDecision::Keep }
    });
    assert_eq!(review.await?, DeadLetterReview { total: 3, seen: 3, retried: 0, dropped: 1 });
    eventually("the others to be back", || async { Ok(letters(&bus, 10).await?.len() == 2) }).await?;
    assert!(letters(&bus, 10).await?.iter().all(|letter| letter.event_id != chosen));
    Ok(())
}

#[tokio::test]
async fn retried_dead_letter_starts_with_attempt_1() -> Result<()> {
    let bus = with_dead_letters(2).await?;
    let review = bus.review_dead_letters(ACCEPTED.queue, 10, |_| DeadLetterDecision::Retry).await?;
    assert_eq!(review, DeadLetterReview { total: 2, seen: 2, retried: 2, dropped: 0 });
    let (handler, consumer) = Running::done(&bus, ACCEPTED);
    handler.wait_for(2).await?;
    consumer.stop().await?;
    assert!(handler.deliveries().iter().all(|delivery| delivery.attempt == 1));
    let left = letters(&bus, 10).await?;
    assert!(left.is_empty(), "{left:?}");
    Ok(())
}

#[tokio::test]
async fn unknown_queue_is_an_error_and_not_created() -> Result<()> {
    let bus = rabbit_bus()?;
    for _ in 0..2 {
        let error = bus.review_dead_letters("mistyped", 10, |_| DeadLetterDecision::Keep).await;
        assert!(
            matches!(&error, Err(DeadLetterError::UnknownQueue(queue)) if queue == "mistyped"),
            "{error:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn local_bus_has_no_dead_letters() {
    let error = local_bus().review_dead_letters(ACCEPTED.queue, 1, |_| DeadLetterDecision::Keep).await;
    assert!(matches!(error, Err(DeadLetterError::LocalBus)), "{error:?}");
}

/// A bus with `count` rejected deliveries.
async fn with_dead_letters(count: usize) -> Result<Bus> {
    let bus = rabbit_bus()?;
    let handler = Scripted::new(|_| Outcome::Reject { reason: "poisoned".to_owned() });
    let one_by_one = Subscription { max_batch: 1, ..ACCEPTED };
    let consumer = Running::consumer(&bus, one_by_one, handler);
    for _ in 0..count {
        publish(&bus, &accepted()).await?;
    }
    eventually("the dead letters", || async { Ok(letters(&bus, 10).await?.len() == count) }).await?;
    consumer.stop().await?;
    Ok(bus)
}

async fn first_dead_letter(bus: &Bus) -> Result<DeadLetter> {
    eventually("a dead letter", || async { Ok(!letters(bus, 1).await?.is_empty()) }).await?;
    letters(bus, 1).await?.pop().context("the dead letter is gone")
}

async fn letters(bus: &Bus, limit: u64) -> Result<Vec<DeadLetter>> {
    let mut letters = Vec::new();
    let review = bus.review_dead_letters(ACCEPTED.queue, limit, |letter| {
        letters.push(letter.clone());
        DeadLetterDecision::Keep
    });
    match review.await {
        Ok(_) => Ok(letters),
        // The consumer has not declared the queue yet.
        Err(DeadLetterError::UnknownQueue(_)) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}
