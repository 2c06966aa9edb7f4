//! Events of imports.

use std::sync::{Arc, Mutex};

use anyhow::{Result, anyhow};
use assay_contracts::event::{ConversationAccepted, Event, Topic};
use assay_messaging::{Delivery, Handler, Outcome, Subscription};
use assay_platform::runtime::Phase;
use async_trait::async_trait;

use assay_testkit::{eventually, on_both_databases};

use crate::test_app::{TestApp, conversation};

on_both_databases! { TestApp {
    accepted_import_publishes_one_event_with_its_request_id,
} }

const TOPICS: &[Topic] = &[ConversationAccepted::TOPIC];
const QUEUE: Subscription =
    Subscription { queue: "test.conversation-accepted", topics: TOPICS, max_batch: 10, max_in_flight: 10 };

type ReceivedEvents = Arc<Mutex<Vec<(ConversationAccepted, Option<String>)>>>;

struct Listener(ReceivedEvents);

#[async_trait]
impl Handler for Listener {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        for delivery in deliveries {
            if let (Ok(event), Ok(mut received)) = (delivery.decode(), self.0.lock()) {
                received.push((event, delivery.context().map(|context| context.request_id)));
            }
        }
        deliveries.iter().map(|_| Outcome::Done).collect()
    }
}

async fn accepted_import_publishes_one_event_with_its_request_id(mut app: TestApp) -> Result<()> {
    let received = ReceivedEvents::default();
    let (bus, handler) = (app.bus.clone(), Arc::new(Listener(received.clone())));
    app.tasks.spawn(Phase::Consume, "listener", move |stop| async move {
        bus.consume(QUEUE, handler, stop).await
    });
    let mut expected = Vec::new();
    for number in 0..10 {
        let response = app.submit(&conversation(&format!("T-{number}"))).await?.error_for_status()?;
        let request_id = response.headers()["x-request-id"].to_str()?.to_owned();
        let receipt: serde_json::Value = response.json().await?;
        expected.push((receipt["id"].as_str().unwrap_or_default().to_owned(), Some(request_id)));
        assert_eq!(app.submit(&conversation(&format!("T-{number}"))).await?.status(), 409);
    }
    // Published after all others, so that events of the duplicates, if any, have arrived as well.
    let last = app.accepted(&conversation("last")).await?;
    let is_last = |event: &ConversationAccepted| event.ticket_id.to_string() == last;
    let has_all = || async {
        let received = received.lock().map_err(|_| anyhow!("the listener panicked"))?;
        Ok(received.len() > expected.len() && received.iter().any(|(event, _)| is_last(event)))
    };
    eventually("all events", has_all).await?;
    let received = received.lock().map_err(|_| anyhow!("the listener panicked"))?;
    assert!(received.iter().all(|(event, _)| event.organization_id == app.organization));
    let mut published: Vec<(String, Option<String>)> = received
        .iter()
        .filter(|(event, _)| !is_last(event))
        .map(|(event, request_id)| (event.ticket_id.to_string(), request_id.clone()))
        .collect();
    published.sort();
    expected.sort();
    assert_eq!(published, expected);
    Ok(())
}
