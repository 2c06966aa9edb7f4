//! What others hear of an import.

use std::sync::{Arc, Mutex};

use anyhow::{Result, anyhow};
use assay_contracts::event::{ConversationAccepted, Event, Topic};
use assay_messaging::{Delivery, Handler, Outcome, Subscription};
use assay_platform::runtime::Phase;
use async_trait::async_trait;

use assay_testkit::{eventually, on_both_databases};

use crate::stage::{Stage, conversation};

on_both_databases! { Stage {
    every_accepted_import_is_announced_once_with_the_id_of_its_request,
} }

const TOPICS: &[Topic] = &[ConversationAccepted::TOPIC];
const QUEUE: Subscription =
    Subscription { queue: "test.conversation-accepted", topics: TOPICS, max_batch: 10, max_in_flight: 10 };

type Heard = Arc<Mutex<Vec<(ConversationAccepted, Option<String>)>>>;

struct Listener(Heard);

#[async_trait]
impl Handler for Listener {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        for delivery in deliveries {
            if let (Ok(event), Ok(mut heard)) = (delivery.decode(), self.0.lock()) {
                heard.push((event, delivery.context().map(|context| context.request_id)));
            }
        }
        deliveries.iter().map(|_| Outcome::Done).collect()
    }
}

async fn every_accepted_import_is_announced_once_with_the_id_of_its_request(mut stage: Stage) -> Result<()> {
    let heard = Heard::default();
    let (bus, handler) = (stage.bus.clone(), Arc::new(Listener(heard.clone())));
    stage.tasks.spawn(Phase::Consume, "listener", move |stop| async move {
        bus.consume(QUEUE, handler, stop).await
    });
    let mut expected = Vec::new();
    for number in 0..10 {
        let response = stage.submit(&conversation(&format!("T-{number}"))).await?.error_for_status()?;
        let request_id = response.headers()["x-request-id"].to_str()?.to_owned();
        let receipt: serde_json::Value = response.json().await?;
        expected.push((receipt["id"].as_str().unwrap_or_default().to_owned(), Some(request_id)));
        assert_eq!(stage.submit(&conversation(&format!("T-{number}"))).await?.status(), 409);
    }
    // Announced after all of the others, so that whatever was announced for the duplicates is there as well.
    let last = stage.accepted(&conversation("last")).await?;
    let is_last = |event: &ConversationAccepted| event.ticket_id.to_string() == last;
    let all_heard = || async {
        let heard = heard.lock().map_err(|_| anyhow!("the listener panicked"))?;
        Ok(heard.len() > expected.len() && heard.iter().any(|(event, _)| is_last(event)))
    };
    eventually("the announcements", all_heard).await?;
    let heard = heard.lock().map_err(|_| anyhow!("the listener panicked"))?;
    assert!(heard.iter().all(|(event, _)| event.organization_id == stage.organization));
    let mut announced: Vec<(String, Option<String>)> = heard
        .iter()
        .filter(|(event, _)| !is_last(event))
        .map(|(event, request_id)| (event.ticket_id.to_string(), request_id.clone()))
        .collect();
    announced.sort();
    expected.sort();
    assert_eq!(announced, expected);
    Ok(())
}
