//! The page of imports: its period, and why imports failed.

use anyhow::Result;
use serde_json::json;

use crate::test_app::{TICKET, TestApp};

#[tokio::test]
async fn failed_import_is_listed_with_its_reason() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.answer_all();
    let mut list = crate::test_app::listed(&["Lost"], 1, None);
    list["data"][0]["ticket"]["id"] = json!(TICKET);
    app.services.answer("/internal/v1/evaluations?status=failed", 200, list);
    let path = format!("/internal/v1/tickets/{TICKET}/evaluation");
    let failed = json!({ "ticket_id": TICKET, "status": "failed", "error_message": "expired <unread>" });
    app.services.answer(&path, 200, failed);
    let mut summary = crate::test_app::summary();
    summary["totals"]["count"] = json!(1);
    summary["totals"]["failed"] = json!(1);
    app.services.answer("/internal/v1/evaluations/summary", 200, summary);
    let text = app.get(&session, "/console/imports").await?.text;
    assert!(text.contains("<span class=\"why\">expired &#60;unread&#62;</span>"), "{text}");
    let all = "<a class=\"q\" href=\"/console/conversations\">1 conversation</a>";
    assert!(text.contains(all), "the number leads to its rows: {text}");
    app.services.answer(&path, 503, json!({}));
    let page = app.get(&session, "/console/imports").await?;
    assert!(page.status == 200 && page.text.contains("Lost"), "{}", page.text);
    Ok(())
}

#[tokio::test]
async fn refused_period_of_imports_is_named() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.answer_all();
    for (query, fault) in
        [("from=yesterday", "from"), ("from=2026-02-01&to=2026-01-01", "from"), ("charge=x", "charge")]
    {
        let page = app.get(&session, &format!("/console/imports?{query}")).await?;
        assert_eq!(page.status, 400, "{query}");
        assert!(page.text.contains(&format!("id=\"{fault}-fault\"")), "{query}: {}", page.text);
    }
    Ok(())
}
