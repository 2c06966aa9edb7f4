//! The local bus: an event is published when its consumers have handled it.

mod support;

use std::collections::HashSet;

use anyhow::Result;
use assay_contracts::event::{AgentCreated, ConversationAccepted, Event as _};
use assay_messaging::{Bus, BusSettings, Outcome, OutgoingEvent, PublishError, Subscription};
use assay_platform::runtime::RequestContext;
use tokio::time::timeout;

use support::{
    ACCEPTED, DEADLINE, Running, Scripted, accepted, agent_created, agent_named, eventually, local_bus,
    publish, publish_all,
};

#[tokio::test]
async fn publish_returns_after_the_consumer_is_done() -> Result<()> {
    let bus = local_bus();
    let handler = Scripted::gated(|_| Outcome::Done);
    let consumer = Running::consumer(&bus, ACCEPTED, handler.clone());
    let events = [accepted()];
    let publishing = publish_all(&bus, &events);
    tokio::pin!(publishing);
    tokio::select! {
        result = &mut publishing => panic!("published before it was handled: {result:?}"),
        waited = eventually("the handler to begin", || async { Ok(handler.begun() == 1) }) => waited?,
    }
    handler.open();
    assert_eq!(timeout(DEADLINE, publishing).await?, [Ok(())]);
    assert_eq!(handler.deliveries()[0].id, events[0].id());
    consumer.stop().await
}

#[tokio::test]
async fn handler_call_is_bounded_in_bytes_and_a_larger_event_is_alone() -> Result<()> {
    const BOTH: Subscription =
        Subscription { topics: &[ConversationAccepted::TOPIC, AgentCreated::TOPIC], ..ACCEPTED };
    let bus = local_bus();
    let (handler, consumer) = Running::done(&bus, BOTH);
    publish(&bus, &accepted()).await?;
    // A call has at most 4 MiB.
    let events = [1_500, 1_500, 1_500, 5_000, 100].map(|kib| agent_named("x".repeat(kib * 1024)));
    assert!(bus.publish(&events).await.iter().all(Result::is_ok));
    consumer.stop().await?;
    let sizes: Vec<usize> = handler.batches()[1..].iter().map(Vec::len).collect();
    assert_eq!(sizes, [2, 1, 1, 1]);
    Ok(())
}

#[tokio::test]
async fn event_without_a_required_consumer_is_unroutable() {
    let result = local_bus().publish(&[accepted()]).await;
    assert_eq!(
        result,
        [Err(PublishError::Unroutable { topic: ConversationAccepted::TOPIC.name.to_owned() })]
    );
}

#[tokio::test]
async fn publish_fails_while_one_of_the_queues_has_no_consumer() -> Result<()> {
    let bus = local_bus();
    let (_, first) = Running::done(&bus, ACCEPTED);
    publish(&bus, &accepted()).await?;
    first.stop().await?;
    let (running, second) = Running::done(&bus, Subscription { queue: "test.another", ..ACCEPTED });
    let results = bus.publish(&[accepted()]).await;
    assert!(matches!(results[0], Err(PublishError::Unavailable(_))), "{results:?}");
    assert_eq!(running.deliveries().len(), 0);
    second.stop().await
}

#[tokio::test]
async fn event_that_needs_no_consumer_is_published_without_one() {
    assert_eq!(local_bus().publish(&[agent_created()]).await, [Ok(())]);
}

#[tokio::test]
async fn outcomes_are_returned_to_the_producer() -> Result<()> {
    let bus = local_bus();
    let (retried, rejected, done) = (accepted(), accepted(), accepted());
    let (retried_id, rejected_id) = (retried.id(), rejected.id());
    let handler = Scripted::new(move |delivery| match delivery.id {
        id if id == retried_id => Outcome::Retry { reason: "busy".to_owned() },
        id if id == rejected_id => Outcome::Reject { reason: "poisoned".to_owned() },
        _ => Outcome::Done,
    });
    let consumer = Running::consumer(&bus, ACCEPTED, handler);
    publish(&bus, &done).await?;
    let expected = [
        Err(PublishError::Retry { reason: "busy".to_owned() }),
        Err(PublishError::Rejected { reason: "poisoned".to_owned() }),
        Ok(()),
    ];
    assert_eq!(bus.publish(&[retried, rejected, done]).await, expected);
    consumer.stop().await
}

#[tokio::test]
async fn last_failed_attempt_is_a_rejection() -> Result<()> {
    let bus = Bus::open(&BusSettings { max_attempts: 1, ..BusSettings::new("local:") })?;
    let handler = Scripted::new(|_| Outcome::Retry { reason: "busy".to_owned() });
    let consumer = Running::consumer(&bus, ACCEPTED, handler);
    let expected = PublishError::Rejected { reason: "attempt 1 of 1: busy".to_owned() };
    assert_eq!(publish_all(&bus, &[accepted()]).await, [Err(expected)]);
    consumer.stop().await
}

#[tokio::test]
async fn panic_or_missing_outcome_of_a_handler_is_a_failed_attempt() -> Result<()> {
    let bus = local_bus();
    let handler = Scripted::new(|_| panic!("out of order"));
    let consumer = Running::consumer(&bus, ACCEPTED, handler);
    let expected = PublishError::Retry { reason: "handler panicked: out of order".to_owned() };
    assert_eq!(publish_all(&bus, &[accepted()]).await, [Err(expected)]);
    consumer.stop().await?;

    let consumer = Running::consumer(&bus, ACCEPTED, std::sync::Arc::new(NoOutcome));
    let expected = PublishError::Retry { reason: "handler answered 0 outcomes for 1 deliveries".to_owned() };
    assert_eq!(publish_all(&bus, &[accepted()]).await, [Err(expected)]);
    consumer.stop().await
}

#[tokio::test]
async fn queues_get_all_events_and_their_consumers_share_them() -> Result<()> {
    let bus = local_bus();
    let other_queue = Subscription { queue: "auditor.conversation-accepted", ..ACCEPTED };
    let (first, first_consumer) = Running::done(&bus, ACCEPTED);
    let (second, second_consumer) = Running::done(&bus, ACCEPTED);
    let (other, other_consumer) = Running::done(&bus, other_queue);
    let used = |handler: &Scripted| !handler.deliveries().is_empty();
    eventually("all consumers to be used", || async {
        Ok(bus.publish(&[accepted()]).await == [Ok(())] && used(&first) && used(&second) && used(&other))
    })
    .await?;
    let handled_before = first.ids().union(&second.ids()).copied().collect::<HashSet<_>>();
    let events: Vec<OutgoingEvent> = (0..100).map(|_| accepted()).collect();
    assert!(bus.publish(&events).await.iter().all(Result::is_ok));
    let (of_first, of_second) = (first.ids(), second.ids());
    assert!(of_first.is_disjoint(&of_second), "an event was handled by both");
    let shared: HashSet<_> = of_first.union(&of_second).copied().collect();
    let expected: HashSet<_> = events.iter().map(OutgoingEvent::id).collect();
    assert_eq!(shared.difference(&handled_before).copied().collect::<HashSet<_>>(), expected);
    assert!(other.ids().is_superset(&expected));
    for consumer in [first_consumer, second_consumer, other_consumer] {
        consumer.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn batches_respect_the_limits_of_the_subscription() -> Result<()> {
    let bus = local_bus();
    let handler = Scripted::gated(|_| Outcome::Done);
    let subscription = Subscription { max_batch: 4, max_in_flight: 10, ..ACCEPTED };
    let consumer = Running::consumer(&bus, subscription, handler.clone());
    let events: Vec<OutgoingEvent> = (0..50).map(|_| accepted()).collect();
    let publishing = publish_all(&bus, &events);
    tokio::pin!(publishing);
    tokio::select! {
        _ = &mut publishing => panic!("published before it was handled"),
        waited = eventually("as much work as allowed", || async { Ok(handler.begun() == 10) }) => waited?,
    }
    handler.open();
    assert!(timeout(DEADLINE, publishing).await?.iter().all(Result::is_ok));
    let sizes: Vec<usize> = handler.batches().iter().map(Vec::len).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 50);
    assert!(sizes.iter().all(|size| *size <= 4) && sizes.iter().any(|size| *size > 1), "{sizes:?}");
    consumer.stop().await
}

#[tokio::test]
async fn stopping_consumer_finishes_its_batch_and_returns_the_rest() -> Result<()> {
    let bus = local_bus();
    let handler = Scripted::gated(|_| Outcome::Done);
    let subscription = Subscription { max_batch: 1, max_in_flight: 1, ..ACCEPTED };
    let mut consumer = Running::consumer(&bus, subscription, handler.clone());
    let (begun, waiting) = ([accepted()], [accepted(), accepted()]);
    let first = publish_all(&bus, &begun);
    tokio::pin!(first);
    tokio::select! {
        _ = &mut first => panic!("published before it was handled"),
        waited = eventually("the handler to begin", || async { Ok(handler.begun() == 1) }) => waited?,
    }
    let rest = bus.publish(&waiting);
    tokio::pin!(rest);
    assert!(futures_util::poll!(&mut rest).is_pending(), "they failed although the consumer runs");
    consumer.begin_stop();
    // The waiting events fail at their producer only after the consumer has seen the stop.
    let returned = Err(PublishError::Unavailable("the consumer has stopped".to_owned()));
    assert_eq!(timeout(DEADLINE, rest).await?, [returned.clone(), returned]);
    assert!(consumer.is_running(), "it left its work behind");
    handler.open();
    assert_eq!(timeout(DEADLINE, first).await?, [Ok(())]);
    assert_eq!(handler.deliveries().len(), 1);
    consumer.stop().await
}

#[tokio::test]
async fn request_context_travels_with_the_event() -> Result<()> {
    let bus = local_bus();
    let (handler, consumer) = Running::done(&bus, ACCEPTED);
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let context = RequestContext::from_headers(Some("request-1"), Some(traceparent));
    let event = context.clone().scope(async { accepted() }).await;
    publish(&bus, &event).await?;
    publish(&bus, &accepted()).await?;
    let deliveries = handler.deliveries();
    assert_eq!(deliveries[0].context(), Some(context));
    assert_eq!(deliveries[1].context(), None);
    consumer.stop().await
}

/// A handler that returns no outcome.
struct NoOutcome;

#[async_trait::async_trait]
impl assay_messaging::Handler for NoOutcome {
    async fn handle(&self, _deliveries: &[assay_messaging::Delivery]) -> Vec<Outcome> {
        Vec::new()
    }
}
