//! The overview: its coverage, its faults, and what its form keeps.

use anyhow::Result;
use assay_contracts::ids::AgentId;
use assay_contracts::time::DAY_MILLIS;
use assay_platform::runtime::new_id;
use serde_json::{Value, json};

use crate::test_app::{TICKET, TestApp, summary};

/// A summary of an organization without evaluations. Export does not know pending imports: the console adds them.
fn nothing_evaluated() -> Value {
    let mut summary = summary();
    summary["coverage"] =
        json!({ "imported": 0, "scored": 0, "not_applicable": 0, "failed": 0, "pending": 0 });
    summary
}

async fn app_with(summary: Value) -> Result<(TestApp, String)> {
    let (app, session) = TestApp::signed_in().await?;
    app.services.answer("/internal/v1/evaluations/summary", 200, summary);
    app.services.answer("/internal/v1/evaluations?", 200, crate::test_app::listed(&[], 0, None));
    Ok((app, session))
}

#[tokio::test]
async fn pending_imports_are_counted_and_announced() -> Result<()> {
    let (app, session) = app_with(nothing_evaluated()).await?;
    app.services.answer("/internal/v1/tickets?", 200, json!({ "count": 12, "since": null }));
    app.services.answer("/internal/v1/evaluations/count", 200, json!({ "count": 5, "since": null }));
    let page = app.get(&session, "/console?from=2026-01-01&to=2026-01-31").await?;
    let number = "<a class=\"q\" href=\"/console/imports?from=2026-01-01&#38;to=2026-01-31\">7</a>";
    let expected = ["{} imported", "{} pending", "Imported, and not evaluated yet: {}."];
    page.assert_has(&expected.map(|text| text.replace("{}", number)));
    assert!(!page.text.contains("There is no conversation yet"));
    let page = app.get(&session, "/console/imports?from=2026-01-01&to=2026-01-31").await?;
    page.assert_has(&["7 conversations accepted and kept, of 1 – 31 January 2026"]);
    let counted = app.services.requested_paths();
    let counted = counted.iter().rfind(|path| path.contains("/tickets?")).unwrap();
    assert!(counted.contains("from=1767225600000&to=1769904000000"), "{counted}");
    let page = app.get(&session, "/console/imports").await?;
    page.assert_has(&["7 conversations accepted", "<td class=\"num\">7</td>"]);
    Ok(())
}

#[tokio::test]
async fn limited_count_of_pending_imports_is_shown_as_a_minimum() -> Result<()> {
    let (app, session) = app_with(nothing_evaluated()).await?;
    app.services.answer("/internal/v1/tickets?", 200, json!({ "count": 10_000, "since": TICKET }));
    app.services.answer("/internal/v1/evaluations/count", 200, json!({ "count": 9_993 }));
    let page = app.get(&session, "/console?from=2026-01-01&to=2026-01-31").await?;
    let number = "<a class=\"q\" href=\"/console/imports?from=2026-01-01&#38;to=2026-01-31\">7</a>";
    let expected = ["at least {} imported", "+ at least {} pending", "not evaluated yet: at least {}."];
    page.assert_has(&expected.map(|text| text.replace("{}", number)));
    let page = app.get(&session, "/console/imports?from=2026-01-01&to=2026-01-31").await?;
    page.assert_has(&["at least 7 conversations accepted and kept", "<td class=\"num\">at least 7</td>"]);
    app.services.answer("/internal/v1/evaluations/count", 200, json!({ "count": 10_000 }));
    let text = app.get(&session, "/console?from=2026-01-01&to=2026-01-31").await?.text;
    assert!(text.contains("<b>0</b> pending") && !text.contains("at least"), "{text}");
    Ok(())
}

#[tokio::test]
async fn pages_work_without_the_service_that_counts_pending_imports() -> Result<()> {
    let (app, session) = app_with(nothing_evaluated()).await?;
    app.services.answer("/internal/v1/tickets?", 503, json!({}));
    let page = app.get(&session, "/console").await?;
    assert_eq!(page.status, 200, "{}", page.text);
    assert!(page.text.contains("Imports cannot be counted now"), "{}", page.text);
    assert!(!page.text.contains("There is no conversation yet"), "{}", page.text);
    let page = app.get(&session, "/console/imports").await?;
    assert!(page.status == 200 && page.text.contains("cannot be counted now"), "{}", page.text);
    assert!(page.text.contains("0 conversations evaluated or failed; pending ones"), "{}", page.text);
    assert!(!page.text.contains("accepted and kept"), "{}", page.text);
    Ok(())
}

#[tokio::test]
async fn every_fault_of_the_query_is_named() -> Result<()> {
    let (app, session) = app_with(nothing_evaluated()).await?;
    let page = app.get(&session, "/console?from=2010-01-01&to=2026-11-01&by=size&nosuch=1").await?;
    assert_eq!(page.status, 400);
    page.assert_has(&[
        "id=\"from-fault\"",
        "15 years at most",
        "value=\"2010-01-01\" aria-invalid=\"true\"",
        "value=\"2026-11-01\"",
        "aria-describedby=\"from-fault\"",
        "<li>From: A period has",
        "<li>Break down by: is none of tool, agent, involvement, language</li>",
        "<li>nosuch: is not a parameter of this page</li>",
        // A link that works.
        "href=\"/console?period=28d\"",
    ]);
    Ok(())
}

#[tokio::test]
async fn fault_of_the_comparison_stands_beside_its_field() -> Result<()> {
    let (app, session) = app_with(nothing_evaluated()).await?;
    let page = app.get(&session, "/console?beside=never&by=language").await?;
    assert_eq!(page.status, 400);
    page.assert_has(&[
        "<p class=\"fault\" id=\"beside-fault\">",
        "name=\"beside\" aria-invalid=\"true\" aria-describedby=\"beside-fault\">",
        "<a href=\"/console?by=language&#38;period=7d\">",
    ]);
    Ok(())
}

#[tokio::test]
async fn form_of_the_period_keeps_breakdown_and_distribution() -> Result<()> {
    let (app, session) = app_with(nothing_evaluated()).await?;
    let page = app.get(&session, "/console?period=7d&by=language&of=handoff_smoothness").await?;
    page.assert_has(&[
        "<input type=\"hidden\" name=\"by\" value=\"language\">",
        "<input type=\"hidden\" name=\"of\" value=\"handoff_smoothness\">",
    ]);
    Ok(())
}

/// The summary of a period of days, with all points of its trends and all groups.
fn summary_of(days: i64, step_days: i64) -> Value {
    let mut summary = summary();
    let measures = |at: i64| {
        let mean = |offset: i64| 2.0 + ((at * 7919 + offset * 131) % 300) as f64 / 100.0;
        json!({
            "count": 900 + at, "scored": 900 + at, "not_applicable": 0, "failed": 0,
            "means": { "axis": mean(0), "resolution_accuracy": mean(1), "interaction_effort": mean(2),
                "handoff_smoothness": mean(3), "confidence": 0.8 },
            "bands": { "excellent": 10, "good": 20, "mixed": 30, "poor": 40 },
            "charges": { "supported": 10, "review": 20, "disputed": 30, "not_applicable": 0 },
        })
    };
    let series = |end: i64| -> Vec<Value> {
        let first = end - days * DAY_MILLIS;
        let starts = (0..).map(|at| first + at * step_days * DAY_MILLIS).take_while(|start| *start < end);
        let point = |(at, start): (usize, i64)| {
            let mut point = measures(i64::try_from(at).unwrap());
            point["from"] = json!(start);
            point["to"] = json!((start + step_days * DAY_MILLIS).min(end));
            point
        };
        starts.enumerate().map(point).collect()
    };
    let period = json!({ "from": END - days * DAY_MILLIS, "to": END });
    let before = json!({ "from": END - 2 * days * DAY_MILLIS, "to": END - days * DAY_MILLIS });
    // The most groups that the page shows: one tool with its agents.
    let agents: Vec<Value> = (0..200)
        .map(|at| {
            let mut group = measures(at);
            group["value"] = json!(new_id::<AgentId>());
            group["label"] = json!(format!("Agent number {at}"));
            group
        })
        .collect();
    let mut tool = measures(3);
    tool["value"] = json!("intercom");
    tool["groups"] = json!(agents);
    summary["breakdown"] = json!({ "by": ["ai_tool", "agent"], "groups": [tool], "truncated": false });
    summary["period"] = period;
    summary["totals"] = measures(0);
    summary["series"] = json!(series(END));
    summary["compared"] =
        json!({ "period": before, "totals": measures(1), "series": series(END - days * DAY_MILLIS) });
    summary
}

/// 2026-11-01.
const END: i64 = 1_793_491_200_000;

#[tokio::test]
async fn overview_of_years_weighs_at_most_30_kb() -> Result<()> {
    let (app, session) = app_with(summary_of(31, 1)).await?;
    for days in [31, 364, 455, 456, 3 * 365, 15 * 365] {
        let (from, to) = (END - days * DAY_MILLIS, END - DAY_MILLIS);
        let day = |millis| chrono::DateTime::from_timestamp_millis(millis).unwrap().format("%Y-%m-%d");
        let address = format!("/console?from={}&to={}", day(from), day(to));
        app.get(&session, &address).await?;
        let requested = app.services.requested_paths();
        let requested = requested.iter().rfind(|path| path.contains("step=")).unwrap();
        let step_days = [("step=day", 1), ("step=week", 7), ("step=quarter", 91)]
            .into_iter()
            .find(|(step, _)| requested.contains(step))
            .unwrap()
            .1;
        app.services.answer("/internal/v1/evaluations/summary", 200, summary_of(days, step_days));
        let weight = app.weight(&session, &address).await?;
        println!("{days} days by {step_days}: {weight} bytes");
        assert!(weight <= 30_000, "{days} days by {step_days}: {weight} bytes");
    }
    Ok(())
}

#[tokio::test]
async fn heading_of_the_breakdown_is_in_sentence_case() -> Result<()> {
    let (app, session) = app_with(summary_of(28, 1)).await?;
    let text = app.get(&session, "/console?by=language").await?.text;
    assert!(text.contains("<h2 id=\"h-by\">By language</h2>") && text.contains(">Language</a>"), "{text}");
    let text = app.get(&session, "/console").await?.text;
    assert!(text.contains("<h2 id=\"h-by\">By AI tool, agent</h2>"), "{text}");
    Ok(())
}
