//! Events, their consumers, and the executable.

use std::process::Command;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use assay_contracts::event::{ConversationAccepted, Event as _};
use assay_contracts::ids::OrganizationId;
use assay_messaging::{Bus, Delivery, Handler, Outcome, OutgoingEvent, Subscription};
use assay_platform::runtime::{new_id, now};
use async_trait::async_trait;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub const SUBSCRIPTION: Subscription = Subscription {
    queue: assay_scoring_worker::QUEUE,
    topics: &[ConversationAccepted::TOPIC],
    max_batch: 1,
    max_in_flight: 1,
};

/// A running consumer. Dropping it aborts it, and its connection may then hold a message until the broker misses the
/// heartbeats; [`Self::stop`] closes the connection first.
pub struct Consumer {
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Consumer {
    pub fn start(bus: &Bus, handler: Arc<dyn Handler>) -> Self {
        let (bus, stop) = (bus.clone(), CancellationToken::new());
        let mut task = JoinSet::new();
        let stopped = stop.clone();
        task.spawn(async move { bus.consume(SUBSCRIPTION, handler, stopped).await });
        Self { stop, task }
    }

    pub async fn stop(mut self) {
        self.stop.cancel();
        self.task.join_next().await;
    }
}

pub fn accepted_event(organization_id: OrganizationId) -> Result<OutgoingEvent> {
    let event = ConversationAccepted { organization_id, ticket_id: new_id(), accepted_at: now() };
    Ok(OutgoingEvent::new(new_id(), now(), &event)?)
}

pub fn rejection() -> Outcome {
    Outcome::Reject { reason: "unknown kind of author".to_owned() }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Records deliveries and returns the same outcome for each.
pub struct Recorder {
    outcome: Outcome,
    ids: Mutex<Vec<String>>,
}

impl Recorder {
    pub fn returning(outcome: Outcome) -> Self {
        Self { outcome, ids: Mutex::default() }
    }

    pub fn ids(&self) -> Vec<String> {
        self.ids.lock().unwrap().clone()
    }
}

#[async_trait]
impl Handler for Recorder {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        self.ids.lock().unwrap().extend(deliveries.iter().map(|delivery| delivery.id.to_string()));
        vec![self.outcome.clone(); deliveries.len()]
    }
}

/// The executable, without the variables of the test servers, which it would refuse as unknown settings.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    command.env_remove("ASSAY_TEST_POSTGRES_URL").env_remove("ASSAY_TEST_AMQP_URL");
    command
}
