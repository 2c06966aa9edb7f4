//! Webhooks, received by a real HTTP server and verified with the official library.

mod deliveries;
mod management;
mod notifications;

use anyhow::Result;
use reqwest::Method;
use serde_json::{Value, json};

pub use self::deliveries::{receiver_outage, retries};
pub use self::management::{refusals, turned_off};
pub use self::notifications::run as notifications;
use crate::harness::{Api, Message, Receiver, Reply, message, resolved_by, text, until};

/// The event types an endpoint may subscribe to.
const EVENTS: [&str; 6] = [
    "evaluation.completed",
    "evaluation.failed",
    "resolution.disputed",
    "axis.low_score",
    "export.completed",
    "export.failed",
];

/// An endpoint at a receiver.
struct Hook {
    api: Api,
    id: String,
    secret: String,
}

impl Hook {
    async fn new(api: Api, receiver: &Receiver, events: &[&str]) -> Result<Self> {
        let created = api.post("/v1/webhooks", &json!({"url": receiver.url(), "events": events})).await?;
        let created = created.expect(201)?;
        Ok(Self { api, id: text(&created, "id")?, secret: text(&created, "secret")? })
    }

    fn path(&self, rest: &str) -> String {
        format!("/v1/webhooks/{}{rest}", self.id)
    }

    async fn read(&self) -> Result<Value> {
        self.api.get(&self.path("")).await?.expect(200)
    }

    async fn change(&self, change: &Value) -> Result<Value> {
        let request = self.api.request(Method::PATCH, &self.path("")).json(change);
        self.api.reply(request).await?.expect(200)
    }

    async fn post(&self, rest: &str) -> Result<Reply> {
        self.api.reply(self.api.request(Method::POST, &self.path(rest))).await
    }

    /// Sends a test message and returns its delivery id.
    async fn test(&self) -> Result<String> {
        text(&self.post("/test").await?.expect(202)?, "id")
    }

    async fn delivery(&self, id: &str) -> Result<Value> {
        self.api.get(&self.path(&format!("/deliveries/{id}"))).await?.expect(200)
    }

    /// Waits until a delivery has this status.
    async fn await_status(&self, id: &str, status: &str) -> Result<Value> {
        until(&format!("delivery {id} to be {status}"), async || {
            let delivery = self.delivery(id).await?;
            Ok((delivery["status"] == status).then_some(delivery))
        })
        .await
    }

    /// Waits until evaluations are sent to the endpoint: scoring-worker polls the subscribers.
    async fn await_subscription(&self, receiver: &Receiver) -> Result<()> {
        let mut probe = 0;
        until("the first evaluation message", async || {
            probe += 1;
            let id = self.api.import(&resolved_by(&format!("probe-{probe}"), "hooked-bot")).await?;
            self.api.evaluation(&id).await?;
            // Time for the message of the previous probe.
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            let is_it = |message: &Message| message.payload()["type"] == "evaluation.completed";
            Ok(receiver.messages().iter().any(is_it).then_some(()))
        })
        .await
    }
}

/// A conversation whose charge is disputed.
fn disputed_conversation(ticket_id: &str) -> Value {
    let ann = json!({"type": "contact", "external_id": "ann"});
    let bot = json!({"type": "ai", "external_id": "hooked-bot"});
    json!({"ticket_id": ticket_id, "source": "zendesk", "messages": [
        message(0, &ann, "Please cancel order 5521."),
        message(1, &bot, "You can read about orders in our help centre."),
        message(2, &ann, "That did not help. The order is still not cancelled. I want to speak to a human!"),
        message(3, &bot, "You can read about orders in our help centre."),
        message(4, &ann, "This is useless. Not solved, I am very angry."),
    ]})
}
