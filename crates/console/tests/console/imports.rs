//! The page of imports: its period, why imports failed, and what was refused and why.

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

#[tokio::test]
async fn refused_import_is_listed_with_its_fields() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.answer_all();
    assert!(app.get(&session, "/console/imports").await?.text.contains("Nothing was refused"));
    let refusals = json!({ "refusals": [
        {
            "id": TICKET, "refused_at": 1_767_225_600_000_i64, "code": "invalid-request",
            "detail": "/messages/0/content is required",
            "errors": [
                { "pointer": "/messages/0/content", "detail": "is <required>" },
                { "pointer": "", "detail": "must be an object\u{202e}" },
            ],
            "omitted_errors": 15,
        },
        {
            "id": TICKET, "refused_at": 1_767_225_600_000_i64, "code": "payload-too-large",
            "detail": "the body has more than 4 MiB", "errors": [], "omitted_errors": 0,
        },
    ] });
    app.services.answer("/internal/v1/refusals", 200, refusals);
    let page = app.get(&session, "/console/imports").await?;
    page.assert_has(&[
        "The request is not valid <span class=\"muted\">400, <time datetime=\"2026-01-01T00:00:00Z\"",
        "<span class=\"why\"><code>/messages/0/content</code> is &#60;required&#62;</span>",
        "<span class=\"why\">must be an object<span class=\"ctl\"",
        "<span class=\"why\">and 15 more</span>",
        "The request body is too large <span class=\"muted\">413, ",
        "<span class=\"why\">the body has more than 4 MiB</span>",
    ]);
    let text = page.text;
    assert!(!text.contains("Nothing was refused") && !text.contains("content is required"), "{text}");
    Ok(())
}

#[tokio::test]
async fn imports_are_shown_without_the_service_that_keeps_refusals() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.answer_all();
    app.services.answer("/internal/v1/refusals", 503, json!({}));
    let page = app.get(&session, "/console/imports").await?;
    assert_eq!(page.status, 200, "{}", page.text);
    assert!(
        page.text.contains("Refusals cannot be listed now") && !page.text.contains("Nothing was refused")
    );
    Ok(())
}
