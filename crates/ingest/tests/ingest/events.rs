//! Events of imports.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use assay_contracts::event::{ConversationAccepted, Event, Topic};
use assay_messaging::{Delivery, Handler, Outcome, Subscription};
use assay_platform::runtime::{LockExt as _, Phase};
use async_trait::async_trait;

use assay_testkit::{eventually, on_both_databases};

use crate::test_app::{TestApp, conversation};

on_both_databases! { TestApp {
    accepted_import_publishes_one_event_with_its_request_id,
} }

/// The events of one type that were published, each with the id of its request.
pub struct Received<E>(Mutex<Vec<(E, Option<String>)>>);

#[async_trait]
impl<E: Event + Send> Handler for Received<E> {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        let decoded = |delivery: &Delivery| {
            Some((delivery.decode::<E>().ok()?, delivery.context().map(|context| context.request_id)))
        };
        self.0.locked().extend(deliveries.iter().filter_map(decoded));
        deliveries.iter().map(|_| Outcome::Done).collect()
    }
}

impl<E: Event + Clone + Send + 'static> Received<E> {
    pub fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::default()))
    }

    /// Receives events of these topics while the app runs.
    pub fn listen(app: &mut TestApp, topics: &'static [Topic]) -> Arc<Self> {
        let subscription = Subscription { queue: "test.events", topics, max_batch: 10, max_in_flight: 10 };
        let received = Self::new();
        let (bus, handler) = (app.bus.clone(), received.clone());
        app.tasks.spawn(Phase::Consume, "listener", move |stop| async move {
            bus.consume(subscription, handler, stop).await
        });
        received
    }

    pub fn all(&self) -> Vec<(E, Option<String>)> {
        self.0.locked().clone()
    }
}

async fn accepted_import_publishes_one_event_with_its_request_id(mut app: TestApp) -> Result<()> {
    let received = Received::<ConversationAccepted>::listen(&mut app, &[ConversationAccepted::TOPIC]);
    let mut expected = Vec::new();
    for number in 0..10 {
        let response = app.submit(&conversation(&format!("T-{number}"))).await?.error_for_status()?;
        let request_id = response.headers()["x-request-id"].to_str()?.to_owned();
        let receipt: serde_json::Value = response.json().await?;
        expected.push((receipt["id"].as_str().unwrap_or_default().to_owned(), Some(request_id)));
        assert_eq!(app.submit(&conversation(&format!("T-{number}"))).await?.status(), 409);
    }
    // Published after all others, so that events of the duplicates, if any, have arrived as well.
    let last = app.import(&conversation("last")).await?;
    let is_last = |event: &ConversationAccepted| event.ticket_id.to_string() == last;
    let has_all = || async {
        let received = received.all();
        Ok(received.len() > expected.len() && received.iter().any(|(event, _)| is_last(event)))
    };
    eventually("all events", has_all).await?;
    let received = received.all();
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
