//! States that take a fault or time: a webhook whose endpoint is gone, a message whose payload is erased, an export whose file has
//! expired.

use anyhow::{Context, Result};
use assay_testkit::execute;
use serde_json::{Value, json};

use super::corpus;
use super::visit::{Page, Visit};
use crate::harness::{Receiver, until};

/// Longer than files are kept.
const MONTH_MILLIS: i64 = 31 * 24 * 60 * 60 * 1_000;

/// Creates the states, and returns the pages that show them. The list of exports shows the expired file.
pub async fn create(visit: &Visit) -> Result<Vec<Page>> {
    expire_export(visit).await.context("an expired file")?;
    let (webhook, delivery) = end_webhook(visit).await.context("a webhook that is gone")?;
    Ok(vec![
        Page { name: "webhook-disabled", address: format!("/console/webhooks/{webhook}") },
        Page {
            name: "delivery-erased",
            address: format!("/console/webhooks/{webhook}/deliveries/{delivery}"),
        },
    ])
}

/// An export whose file is removed, because a month has passed in the database.
async fn expire_export(visit: &Visit) -> Result<()> {
    let request = json!({"kind": "resolution_audit", "filters": {"charge": ["review"]}});
    let export = visit.api.export(&request).await?;
    let id = export["id"].as_str().context("no id")?;
    let database = format!("sqlite:{}", visit.stack.data().join("export.sqlite").display());
    execute(
        &database,
        &format!(
            "UPDATE exports SET updated_at = updated_at - {MONTH_MILLIS}, file_expires_at = file_expires_at - {MONTH_MILLIS} \
             WHERE id = '{id}'"
        ),
    )?;
    until("the end of the file", async || {
        let export = visit.api.get(&format!("/v1/evaluations/exports/{id}")).await?.expect(200)?;
        Ok((export["file_status"] == "expired").then_some(()))
    })
    .await
}

/// A webhook that is disabled, because its endpoint answered 410 to a message of an evaluation, and that message, whose payload is
/// erased with its ticket. Returns their ids.
async fn end_webhook(visit: &Visit) -> Result<(String, String)> {
    let receiver = Receiver::start()?;
    receiver.answer_next(&["410 Gone"]);
    let webhook =
        json!({"url": receiver.url(), "events": ["evaluation.completed"], "description": "Old CRM"});
    let webhook = visit.api.post("/v1/webhooks", &webhook).await?.expect(201)?;
    let webhook = webhook["id"].as_str().context("no id")?.to_owned();
    let path = format!("/v1/webhooks/{webhook}");
    let mut conversation = corpus::conversations()?.swap_remove(0);
    let mut tickets: Vec<String> = Vec::new();
    // scoring-worker gets to know of the webhook after a moment.
    let delivery = until("a message of an evaluation", async || {
        conversation["ticket_id"] = json!(format!("erased-{}", tickets.len()));
        tickets.push(visit.import(&conversation).await?);
        let deliveries = visit.api.get(&format!("{path}/deliveries")).await?.expect(200)?;
        Ok(deliveries["data"][0]["id"].as_str().map(str::to_owned))
    })
    .await?;
    until("the end of the webhook", async || {
        let webhook = visit.api.get(&path).await?.expect(200)?;
        Ok((webhook["disabled_reason"] == "gone").then_some(()))
    })
    .await?;
    for ticket in &tickets {
        visit.api.delete(&format!("/v1/tickets/{ticket}")).await?.expect_status(204)?;
    }
    until("the end of the payload", async || {
        let delivery: Value = visit.api.get(&format!("{path}/deliveries/{delivery}")).await?.expect(200)?;
        Ok(delivery.get("payload").is_none().then_some(()))
    })
    .await?;
    Ok((webhook, delivery))
}
