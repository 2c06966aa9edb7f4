//! The page of exports: what became of each file, and cursors that are refused.

use anyhow::Result;
use serde_json::{Value, json};

use crate::test_app::{TICKET, TestApp, page_of};

/// A list with one complete export, whose file has these fields.
fn list_with(file: &Value) -> Value {
    let mut export = json!({
        "id": TICKET, "kind": "axis", "format": "csv", "status": "complete", "filters": {},
        "created_at": 1_767_225_600_000_i64, "updated_at": 1_767_225_600_000_i64,
    });
    for (name, value) in file.as_object().into_iter().flatten() {
        export[name] = value.clone();
    }
    page_of(&[export])
}

#[tokio::test]
async fn state_of_a_file_is_shown() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    let end = 1_767_225_600_000_i64;
    let cases: [(Value, &[&str], bool); 5] = [
        (json!({}), &[">complete</div></td>"], true),
        (
            json!({ "file_status": "available", "file_expires_at": end, "evaluations_complete": true, "missing_evaluations": 0 }),
            &[">complete<span class=\"why\">until <time datetime=\"2026-01-01T00:00:00Z\""],
            true,
        ),
        (
            json!({ "file_status": "available", "evaluations_complete": false, "missing_evaluations": 1_200 }),
            &[">ready<span class=\"why\">up to 1,200 evaluations missing</span></div></td>"],
            true,
        ),
        (
            json!({ "file_status": "available", "evaluations_complete": false }),
            &[">ready<span class=\"why\">may lack evaluations</span></div></td>"],
            true,
        ),
        (
            json!({ "file_status": "expired", "file_expires_at": end, "evaluations_complete": false, "missing_evaluations": 1 }),
            &[">expired <time datetime=\"2026-01-01T00:00:00Z\"", ">up to 1 evaluation missing</span>"],
            false,
        ),
    ];
    for (file, shown, can_download) in cases {
        app.services.answer("/internal/v1/exports", 200, list_with(&file));
        let text = app.get(&session, "/console/exports").await?.text;
        for expected in shown {
            assert!(text.contains(expected), "{file}: {expected}: {text}");
        }
        assert_eq!(text.contains("/download\""), can_download, "{file}");
    }
    Ok(())
}

#[tokio::test]
async fn refused_cursor_is_named_above_the_first_page() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.services.answer("/internal/v1/exports?limit=25", 200, list_with(&json!({})));
    app.services.refuse("/internal/v1/exports?limit=25&cursor=", 400, "invalid-cursor");
    let page = app.get(&session, "/console/exports?cursor=old").await?;
    assert_eq!(page.status, 400, "{}", page.text);
    page.assert_has(&["id=\"cursor-fault\"", "belongs to another list", "id=\"h-new\"", TICKET]);
    Ok(())
}
