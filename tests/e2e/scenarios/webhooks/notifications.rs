//! Messages of evaluations and exports, and their recipients.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{EVENTS, Hook, disputed_conversation};
use crate::harness::{Message, Receiver, Stack};

/// Evaluations and exports are sent to subscribed endpoints of their organization, with valid signatures; payloads of a
/// deleted ticket are erased.
pub async fn run(stack: &Stack) -> Result<()> {
    let (mine, theirs) = (Receiver::start()?, Receiver::start()?);
    let api = stack.api()?;
    api.register("hooked-bot").await?;
    let hook = Hook::new(api.clone(), &mine, &EVENTS).await?;
    let stranger = Hook::new(stack.api_of("stranger").await?, &theirs, &EVENTS).await?;
    hook.await_subscription(&mine).await?;

    let ticket = api.import(&disputed_conversation("T-disputed")).await?;
    let evaluation = api.evaluation(&ticket).await?;
    let of_ticket = |message: &Message| message.payload()["data"]["ticket_id"] == ticket;
    let messages = mine.await_messages("three events of one evaluation", 3, of_ticket).await?;
    evaluation_messages_are_correct(&hook, &messages, &evaluation)?;
    export_message_is_correct(&hook, &mine).await?;
    threshold_applies(&hook, &mine).await?;

    stranger.test().await?;
    theirs.await_messages("the stranger's test message", 1, |_| true).await?;
    let others = theirs.messages();
    ensure!(others.iter().all(|message| message.payload()["type"] == "webhook.test"), "{others:?}");
    others[0].verified(&stranger.secret)?;
    ensure!(others[0].verified(&hook.secret).is_err(), "one organization's secret signs for another");
    deletion_erases_payload(&hook, &messages, &ticket).await
}

fn evaluation_messages_are_correct(hook: &Hook, messages: &[Message], evaluation: &Value) -> Result<()> {
    let mut types = Vec::new();
    for message in messages {
        let payload = message.verified(&hook.secret)?;
        let data = &payload["data"];
        types.push(payload["type"].as_str().context("no type")?.to_owned());
        ensure!(message.header("content-type") == "application/json", "{message:?}");
        ensure!(data["external_ticket_id"] == "T-disputed" && data["source"] == "zendesk", "{payload}");
        ensure!(data["axis"]["score"] == evaluation["axis"]["score"], "{payload}");
        ensure!(data["charge"]["assessment"] == "disputed", "{payload}");
        ensure!(data["resolution"]["status"] == evaluation["resolution"]["status"], "{payload}");
        let text = String::from_utf8_lossy(&message.body).into_owned();
        ensure!(!text.contains("order") && !text.contains("help centre"), "words of the transcript: {text}");
    }
    types.sort();
    ensure!(types == ["axis.low_score", "evaluation.completed", "resolution.disputed"], "{types:?}");
    let ids: BTreeSet<&str> = messages.iter().map(|message| message.header("webhook-id")).collect();
    ensure!(ids.len() == 3, "messages share an id: {ids:?}");
    Ok(())
}

async fn export_message_is_correct(hook: &Hook, receiver: &Receiver) -> Result<()> {
    let export = hook.api.export(&json!({"kind": "axis"})).await?;
    let is_it = |message: &Message| message.payload()["data"]["export_id"] == export["id"];
    let message = receiver.await_messages("the end of the export", 1, is_it).await?.remove(0);
    let payload = message.verified(&hook.secret)?;
    let file = hook.api.file(&export).await?;
    let digest = hex::encode(Sha256::digest(&file));
    let data = &payload["data"];
    ensure!(payload["type"] == "export.completed" && data["kind"] == "axis", "{payload}");
    ensure!(data["sha256"] == digest && data["bytes"] == file.len(), "{payload}");
    Ok(())
}

/// With a threshold of 1.0 no score is low.
async fn threshold_applies(hook: &Hook, receiver: &Receiver) -> Result<()> {
    let changed = hook.change(&json!({"axis_low_score_below": 1.0})).await?;
    ensure!(changed["axis_low_score_below"] == 1.0, "{changed}");
    let ticket = hook.api.import(&disputed_conversation("T-disputed-2")).await?;
    let of_ticket = |message: &Message| message.payload()["data"]["ticket_id"] == ticket;
    // All messages of an evaluation are made in one transaction: when two are there, a third would be in the log.
    receiver.await_messages("two events of one evaluation", 2, of_ticket).await?;
    let log = hook.api.get(&hook.path("/deliveries?limit=100")).await?.expect(200)?;
    let is_low_score = |entry: &&Value| entry["type"] == "axis.low_score";
    // The one of the first conversation, from before the change.
    ensure!(log["data"].as_array().context("no log")?.iter().filter(is_low_score).count() == 1, "{log}");
    Ok(())
}

async fn deletion_erases_payload(hook: &Hook, messages: &[Message], ticket: &str) -> Result<()> {
    let id = messages[0].header("webhook-id");
    let before = hook.delivery(id).await?;
    ensure!(before["payload"]["data"]["ticket_id"] == ticket, "{before}");
    hook.api.delete(&format!("/v1/tickets/{ticket}")).await?.expect_status(204)?;
    crate::harness::until("the payload to be erased", async || {
        Ok(hook.delivery(id).await?.get("payload").is_none().then_some(()))
    })
    .await?;
    hook.post(&format!("/deliveries/{id}/replay")).await?.problem(409, "webhook-payload-erased")?;
    Ok(())
}
