//! Isolation of organizations in the console: a session of one opens no page of another.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::harness::{Cases, Session, Stack, conversation, edited, set, text, until};

/// Marker in the subjects, names and ids of the first organization.
const MARK: &str = "only-in-the-first-console";

/// A field of the refused import on the page of imports.
const REFUSED_FIELD: &str = "<code>/messages</code>";

pub async fn run(stack: &Stack) -> Result<()> {
    let api = stack.api_of("console-first").await?;
    // Creates the second organization.
    stack.api_of("console-second").await?;
    api.register(MARK).await?;
    let ticket = api.import(&edited(conversation(MARK), &[set("/subject", MARK)])).await?;
    api.evaluation(&ticket).await?;
    api.await_listed(("limit", "1"), 1).await?;
    let export = text(&api.export(&json!({"kind": "axis"})).await?, "id")?;
    let webhook = json!({"url": format!("https://hooks.invalid/{MARK}"), "events": ["export.failed"]});
    let webhook = text(&api.post("/v1/webhooks", &webhook).await?.expect(201)?, "id")?;
    let delivery = api.post(&format!("/v1/webhooks/{webhook}/test"), &json!({})).await?.expect(202)?;
    let delivery = text(&delivery, "id")?;

    let owner = Session::open(stack, &stack.other_organization("console-first")).await?;
    let stranger = Session::open(stack, &stack.other_organization("console-second")).await?;
    // Refused for its missing messages.
    api.post("/v1/assess", &json!({"ticket_id": MARK})).await?.expect(400)?;
    until("the refusal is listed", async || {
        let page = String::from_utf8(owner.get("/console/imports").await?.body)?;
        Ok(page.contains(REFUSED_FIELD).then_some(()))
    })
    .await?;
    let mut cases = Cases::default();
    for (page, status) in [
        (format!("/console/conversations/{ticket}"), 200),
        (format!("/console/conversations/{ticket}/messages/1"), 200),
        (format!("/console/conversations/{ticket}/evaluation.json"), 200),
        (format!("/console/exports/{export}/download"), 303),
        (format!("/console/webhooks/{webhook}"), 200),
        (format!("/console/webhooks/{webhook}/deliveries/{delivery}"), 200),
    ] {
        cases.check(page.clone(), expect_only_for(&owner, &stranger, &page, status).await);
    }
    for page in ["", "/conversations", "/exports", "/webhooks", "/agents", "/keys", "/imports"] {
        cases
            .check(format!("list {page}"), expect_nothing_shown(&stranger, &format!("/console{page}")).await);
    }
    let webhook_page = format!("/console/webhooks/{webhook}");
    for form in [
        webhook_page.clone(),
        format!("{webhook_page}/deliveries/{delivery}/replay"),
        format!("/console/typed/webhooks/{webhook}"),
    ] {
        // With a valid token of the stranger's own session.
        let sent = stranger.send("/console/keys", &form).await?;
        cases.check(format!("form {form}"), sent.expect_status(404));
    }
    let kept = api.get(&format!("/v1/webhooks/{webhook}")).await?.expect(200)?;
    ensure!(kept["url"].as_str().is_some_and(|url| url.ends_with(MARK)), "{kept}");
    cases.finish()
}

async fn expect_only_for(owner: &Session, stranger: &Session, page: &str, status: u16) -> Result<()> {
    owner.get(page).await?.expect_status(status)?;
    let refused = stranger.get(page).await?;
    refused.expect_status(404)?;
    ensure!(!refused.text().contains(MARK), "{}", refused.text());
    Ok(())
}

async fn expect_nothing_shown(stranger: &Session, page: &str) -> Result<()> {
    let shown = stranger.get(page).await?;
    shown.expect_status(200)?;
    let text = String::from_utf8(shown.body)?;
    ensure!(!text.contains(MARK) && !text.contains(REFUSED_FIELD), "it has a text of another organization");
    Ok(())
}
