//! Retries, replays and other cases after a failed first attempt.

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use super::{EVENTS, Hook};
use crate::harness::{Message, PrivateStack, Receiver, Stack, resolved_by, text, until};

/// Failures are retried and logged; messages are replayed, secrets rotated; 410 disables the endpoint.
pub async fn retries(stack: &Stack) -> Result<()> {
    let receiver = Receiver::start()?;
    let hook = Hook::new(stack.api()?, &receiver, &EVENTS).await?;
    let id = failing(&hook, &receiver).await?;
    replay(&hook, &receiver, &id).await?;
    rotation(&hook, &receiver).await?;
    log(&hook, &id).await?;
    gone(&hook, &receiver).await?;
    deletion(&hook).await
}

/// 500, a redirect and 429 are failures; the fourth attempt succeeds.
async fn failing(hook: &Hook, receiver: &Receiver) -> Result<String> {
    let elsewhere = format!("302 Found\r\nlocation: {}", receiver.url());
    receiver.answer_next(&[
        "500 Internal Server Error",
        &elsewhere,
        "429 Too Many Requests\r\nretry-after: 2",
    ]);
    let id = hook.test().await?;
    let delivery = hook.await_status(&id, "delivered").await?;
    let attempts = delivery["attempt_log"].as_array().context("no attempts")?;
    let codes: Vec<&Value> = attempts.iter().map(|attempt| &attempt["status_code"]).collect();
    ensure!(codes == [500, 302, 429, 204], "{delivery}");
    ensure!(delivery["attempts"] == 4 && delivery.get("next_attempt_at").is_none(), "{delivery}");
    ensure!(attempts[0]["error"] == "status" && attempts[3].get("error").is_none(), "{delivery}");
    let at = |index: usize| attempts[index]["attempted_at"].as_i64().unwrap_or_default();
    ensure!(at(3) - at(2) >= 2_000, "Retry-After was not kept: {delivery}");
    let messages = receiver.messages();
    ensure!(messages.len() == 4, "a redirect was followed: {messages:?}");
    let first = &messages[0];
    for message in &messages {
        message.verified(&hook.secret)?;
        ensure!(message.header("webhook-id") == id && message.body == first.body, "{message:?}");
    }
    let timestamps = [first, &messages[3]].map(|message| message.header("webhook-timestamp"));
    ensure!(timestamps[0] != timestamps[1], "the timestamp is that of the attempt");
    ensure!(hook.read().await?.get("failing_since").is_none(), "a success ends the failing");
    Ok(id)
}

async fn replay(hook: &Hook, receiver: &Receiver, id: &str) -> Result<()> {
    let queued = hook.post(&format!("/deliveries/{id}/replay")).await?.expect(202)?;
    ensure!(queued["id"] == id && queued["status"] == "pending", "{queued}");
    let of_it = |message: &Message| message.header("webhook-id") == id;
    let again = receiver.await_messages("the replay", 5, of_it).await?;
    again[4].verified(&hook.secret)?;
    let delivery = hook.await_status(id, "delivered").await?;
    ensure!(delivery["attempts"] == 5, "{delivery}");
    Ok(())
}

async fn rotation(hook: &Hook, receiver: &Receiver) -> Result<()> {
    let shown = hook.api.get(&hook.path("/secret")).await?.expect(200)?;
    ensure!(shown == json!({"secret": hook.secret}), "{shown}");
    let rotated = hook.post("/secret/rotate").await?.expect(200)?;
    let new = rotated["secret"].as_str().context("no secret")?;
    ensure!(new.starts_with("whsec_") && new != hook.secret, "{rotated}");
    ensure!(rotated["previous_secret_expires_at"].is_i64(), "{rotated}");
    let id = hook.test().await?;
    let of_it = |message: &Message| message.header("webhook-id") == id;
    let message = receiver.await_messages("a message after the rotation", 1, of_it).await?.remove(0);
    let signatures: Vec<&str> = message.header("webhook-signature").split(' ').collect();
    ensure!(signatures.len() == 2 && signatures[0] != signatures[1], "{signatures:?}");
    // Each signature verifies with its own secret.
    for (secret, signature) in [(new, signatures[0]), (hook.secret.as_str(), signatures[1])] {
        let mut signed_once = message.clone();
        signed_once.headers.insert("webhook-signature", signature.parse()?);
        signed_once.verified(secret)?;
    }
    Ok(())
}

/// The log has two messages so far: that of `failing`, which is `first`, and that of `rotation`.
async fn log(hook: &Hook, first: &str) -> Result<()> {
    let page = async |query: &str| hook.api.get(&hook.path(&format!("/deliveries{query}"))).await;
    hook.await_idle().await?;
    let newest = page("?limit=1").await?.expect(200)?;
    let cursor = text(&newest["page_info"], "next_cursor")?;
    let next = page(&format!("?limit=1&cursor={cursor}")).await?.expect(200)?;
    ensure!(next["data"][0]["id"] == first && next["page_info"]["has_next_page"] == false, "{next}");
    let failed = page("?status=failed").await?.expect(200)?;
    ensure!(failed["data"] == json!([]), "{failed}");
    let delivered = page("?status=delivered").await?.expect(200)?;
    ensure!(delivered["data"].as_array().is_some_and(|data| data.len() == 2), "{delivered}");
    page("?status=lost").await?.error_at("status")?;
    page("?cursor=x").await?.problem(400, "invalid-cursor")?;
    Ok(())
}

async fn gone(hook: &Hook, receiver: &Receiver) -> Result<()> {
    receiver.answer_next(&["410 Gone"]);
    let id = hook.test().await?;
    hook.await_status(&id, "failed").await?;
    let endpoint = hook.read().await?;
    ensure!(endpoint["enabled"] == false && endpoint["disabled_reason"] == "gone", "{endpoint}");
    hook.post("/test").await?.problem(409, "webhook-disabled")?;
    hook.post(&format!("/deliveries/{id}/replay")).await?.problem(409, "webhook-disabled")?;
    let enabled = hook.change(&json!({"enabled": true})).await?;
    ensure!(enabled["enabled"] == true && enabled.get("disabled_reason").is_none(), "{enabled}");
    hook.post(&format!("/deliveries/{id}/replay")).await?.expect(202)?;
    hook.await_status(&id, "delivered").await?;
    Ok(())
}

async fn deletion(hook: &Hook) -> Result<()> {
    hook.api.delete(&hook.path("")).await?.expect_status(204)?;
    hook.api.delete(&hook.path("")).await?.problem(404, "webhook-not-found")?;
    hook.api.get(&hook.path("/deliveries")).await?.problem(404, "webhook-not-found")?;
    let request = hook.api.request(Method::PATCH, &hook.path("")).json(&json!({"enabled": true}));
    hook.api.reply(request).await?.problem(404, "webhook-not-found").map(drop)
}

impl Hook {
    async fn await_idle(&self) -> Result<()> {
        until("nothing to be pending", async || {
            let pending = self.api.get(&self.path("/deliveries?status=pending")).await?.expect(200)?;
            Ok((pending["data"] == json!([])).then_some(()))
        })
        .await
    }
}

/// A receiver outage and a crash of the service: pending messages are delivered afterwards.
pub async fn receiver_outage(stack: &mut PrivateStack) -> Result<()> {
    stack.start().await?;
    let receiver = Receiver::start()?;
    let api = stack.api()?;
    api.register("hooked-bot").await?;
    let hook = Hook::new(api.clone(), &receiver, &["evaluation.completed"]).await?;
    hook.await_subscription(&receiver).await?;
    let address = receiver.address();
    drop(receiver);
    let ticket = api.import(&resolved_by("T-away", "hooked-bot")).await?;
    api.evaluation(&ticket).await?;
    let was_tried = |entry: &Value| entry["status"] == "pending" && entry["attempts"] != 0;
    until("an attempt that fails", async || {
        let log = api.get(&hook.path("/deliveries?status=pending")).await?.expect(200)?;
        Ok(log["data"].as_array().is_some_and(|log| log.iter().any(was_tried)).then_some(()))
    })
    .await?;
    ensure!(hook.read().await?["failing_since"].is_i64(), "the endpoint does not say that it fails");
    stack.kill(&["webhooks"]);
    let receiver = Receiver::at(address)?;
    stack.start().await?;
    let is_it = |message: &Message| message.payload()["data"]["ticket_id"] == ticket;
    let message = receiver.await_messages("the pending message", 1, is_it).await?.remove(0);
    message.verified(&hook.secret)?;
    let delivery = hook.await_status(message.header("webhook-id"), "delivered").await?;
    let errors = delivery["attempt_log"][0]["error"].as_str();
    ensure!(errors == Some("connection_failed"), "{delivery}");
    Ok(())
}
