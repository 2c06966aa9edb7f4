//! Every page of the console, by name and address.

use anyhow::{Context, Result};
use serde_json::json;

use super::states;
use super::visit::{Page, Visit};
use crate::harness::{text, until};

/// All pages. The first call creates webhooks, exports and deliveries for them.
pub async fn pages(visit: &mut Visit) -> Result<Vec<Page>> {
    if visit.pages.is_empty() {
        visit.pages = create_pages(visit).await?;
        let states = states::create(visit).await?;
        visit.pages.extend(states);
    }
    Ok(visit.pages.clone())
}

async fn create_pages(visit: &Visit) -> Result<Vec<Page>> {
    let disputed = first_id(visit, "charge=disputed&language=en&sort=-confidence").await?;
    let handed_over = first_id(visit, "handoff=completed").await?;
    let without_ai = first_id(visit, "external_id=without-ai").await?;
    let webhook = json!({"url": "http://127.0.0.1:1024/hook", "events": ["export.completed"], "description": "Data team"});
    let webhook = text(&visit.api.post("/v1/webhooks", &webhook).await?.expect(201)?, "id")?;
    visit.api.export(&json!({"kind": "axis", "filters": {"charge": ["disputed"]}})).await?;
    let deliveries = format!("/v1/webhooks/{webhook}/deliveries");
    let delivery = until("a delivery of the webhook", async || {
        let page = visit.api.get(&deliveries).await?.expect(200)?;
        Ok(page["data"][0]["id"].as_str().map(str::to_owned))
    })
    .await?;
    let pages = [
        ("overview", "/console".to_owned()),
        ("overview-of-all", "/console?period=all&by=language&of=handoff_smoothness".to_owned()),
        ("overview-of-years", "/console?from=2015-01-01&to=2026-12-31&by=agent".to_owned()),
        ("overview-refused", "/console?from=2026-02-30&to=2026-01-01".to_owned()),
        ("overview-empty", "/console?from=2001-01-01&to=2001-01-02".to_owned()),
        ("conversations", "/console/conversations".to_owned()),
        (
            "conversations-filtered",
            "/console/conversations?charge=disputed&charge=review&sort=axis".to_owned(),
        ),
        ("conversations-refused", "/console/conversations?axis_min=9&charge=perhaps".to_owned()),
        ("conversations-empty", "/console/conversations?subject=nosuchword".to_owned()),
        ("conversation", format!("/console/conversations/{disputed}?charge=disputed")),
        ("conversation-handoff", format!("/console/conversations/{handed_over}")),
        ("conversation-without-ai", format!("/console/conversations/{without_ai}")),
        ("conversation-refused", format!("/console/conversations/{disputed}?charge=perhaps&nosuch=1")),
        ("message", format!("/console/conversations/{disputed}/messages/1")),
        ("exports", "/console/exports".to_owned()),
        ("exports-refused", "/console/exports?charge=perhaps".to_owned()),
        ("export-of-a-filter", "/console/exports?charge=disputed&axis_max=2.5".to_owned()),
        ("webhooks", "/console/webhooks".to_owned()),
        ("webhooks-refused", "/console/webhooks?status=x".to_owned()),
        ("webhook", format!("/console/webhooks/{webhook}")),
        ("delivery", format!("/console/webhooks/{webhook}/deliveries/{delivery}")),
        ("keys", "/console/keys".to_owned()),
        ("agents", "/console/agents".to_owned()),
        ("keys-refused", "/console/keys?before=x".to_owned()),
        ("imports", "/console/imports".to_owned()),
        ("imports-refused", "/console/imports?from=yesterday".to_owned()),
        ("imports-empty", "/console/imports?from=2001-01-01&to=2001-01-02".to_owned()),
        ("help", "/console/help".to_owned()),
        ("not-found", "/console/no-such-page".to_owned()),
    ];
    Ok(pages.into_iter().map(|(name, address)| Page { name, address }).collect())
}

/// The first conversation of a result.
pub async fn first_id(visit: &Visit, query: &str) -> Result<String> {
    let page = visit.api.get(&format!("/v1/evaluations?limit=1&{query}")).await?.expect(200)?;
    text(&page["data"][0]["ticket"], "id").with_context(|| format!("no conversation with {query}: {page}"))
}
