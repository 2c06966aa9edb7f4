//! The overview: its coverage, its faults, and what its form keeps.

use anyhow::Result;
use serde_json::{Value, json};

use crate::test_app::{TestApp, summary};

/// A summary of an organization without evaluations. Export does not know pending imports: the console adds them.
fn nothing_evaluated() -> Value {
    let mut summary = summary();
    summary["coverage"] =
        json!({ "imported": 0, "scored": 0, "not_applicable": 0, "failed": 0, "pending": 0 });
    summary
}

async fn app_with(summary: Value) -> Result<(TestApp, String)> {
    let app = TestApp::start().await?;
    let session = app.sign_in().await?;
    app.services.answer("/internal/v1/evaluations/summary", 200, summary);
    app.services.answer("/internal/v1/evaluations?", 200, crate::test_app::listed(&[], 0, None));
    Ok((app, session))
}

#[tokio::test]
async fn pending_imports_are_counted_and_announced() -> Result<()> {
    let (app, session) = app_with(nothing_evaluated()).await?;
    app.services.answer("/internal/v1/tickets?", 200, json!({ "count": 12, "since": null }));
    app.services.answer("/internal/v1/evaluations/count", 200, json!({ "count": 5, "since": null }));
    let text = app.get(&session, "/console").await?.text;
    assert!(text.contains("<b>7</b> imported") && text.contains("<b>7</b> pending"), "{text}");
    assert!(text.contains("Imported, and not evaluated yet: 7."), "{text}");
    assert!(!text.contains("There is no conversation yet"));
    let text = app.get(&session, "/console/imports").await?.text;
    assert!(text.contains("7 conversations accepted") && text.contains("<td class=\"num\">7</td>"), "{text}");
    Ok(())
}

#[tokio::test]
async fn pages_work_without_the_service_that_counts_pending_imports() -> Result<()> {
    let (app, session) = app_with(nothing_evaluated()).await?;
    app.services.answer("/internal/v1/tickets?", 503, json!({}));
    let page = app.get(&session, "/console").await?;
    assert_eq!(page.status, 200, "{}", page.text);
    assert!(!page.text.contains("id=\"coverage\""), "{}", page.text);
    let page = app.get(&session, "/console/imports").await?;
    assert!(page.status == 200 && page.text.contains("cannot be counted now"), "{}", page.text);
    Ok(())
}

#[tokio::test]
async fn every_fault_of_the_query_is_named() -> Result<()> {
    let (app, session) = app_with(nothing_evaluated()).await?;
    let page = app.get(&session, "/console?from=2010-01-01&to=2026-11-01&by=size&nosuch=1").await?;
    assert_eq!(page.status, 400);
    for expected in [
        "id=\"from-fault\"",
        "15 years at most",
        "value=\"2010-01-01\" aria-invalid=\"true\"",
        "value=\"2026-11-01\"",
        "id=\"by-fault\"",
        "is none of tool, agent, involvement, language",
        "id=\"nosuch-fault\"",
    ] {
        assert!(page.text.contains(expected), "{expected}: {}", page.text);
    }
    Ok(())
}

#[tokio::test]
async fn form_of_the_period_keeps_breakdown_and_distribution() -> Result<()> {
    let (app, session) = app_with(nothing_evaluated()).await?;
    let text = app.get(&session, "/console?period=7d&by=language&of=handoff_smoothness").await?.text;
    assert!(text.contains("<input type=\"hidden\" name=\"by\" value=\"language\">"), "{text}");
    assert!(text.contains("<input type=\"hidden\" name=\"of\" value=\"handoff_smoothness\">"), "{text}");
    Ok(())
}
