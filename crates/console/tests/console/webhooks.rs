//! The pages of a webhook and of its messages: refused requests, and buttons that would only be refused.

use anyhow::Result;
use serde_json::{Value, json};

use crate::stand_ins::webhook;
use crate::test_app::{TICKET, TestApp, page_of};

const REPLAY: &str = "/replay\"";

fn delivery() -> Value {
    json!({ "id": TICKET, "type": "evaluation.completed", "status": "delivered", "attempts": 1, "created_at": 0 })
}

/// A message as its page reads it, with its payload if it has one.
fn details(payload: Option<Value>) -> Value {
    let mut details = delivery();
    details["attempt_log"] = json!([]);
    if let Some(payload) = payload {
        details["payload"] = payload;
    }
    details
}

/// A console with a webhook that has one message.
async fn app_with(is_enabled: bool, details: Value) -> Result<(TestApp, String)> {
    let (app, session) = TestApp::signed_in().await?;
    let path = format!("/internal/v1/webhooks/{TICKET}");
    app.services.answer(&path, 200, webhook(is_enabled));
    app.services.answer(&format!("{path}/deliveries?"), 200, page_of(&[delivery()]));
    app.services.answer(&format!("{path}/deliveries/{TICKET}"), 200, details);
    Ok((app, session))
}

#[tokio::test]
async fn refused_test_and_replay_say_when_to_try_again() -> Result<()> {
    let (app, session) = app_with(true, details(Some(json!({})))).await?;
    let problem = json!({
        "status": 429, "title": "Too many requests", "detail": "your organization may request 30 a minute",
        "type": "urn:assay:problem:rate-limited", "code": "rate-limited",
    });
    let (service, page) = (format!("/internal/v1/webhooks/{TICKET}"), format!("/console/webhooks/{TICKET}"));
    app.services.answer(&format!("{service}/test"), 429, problem.clone());
    app.services.answer(&format!("{service}/deliveries/{TICKET}/replay"), 429, problem);
    let replay = format!("{page}/deliveries/{TICKET}/replay");
    let sent: [(&str, &[(&str, &str)]); 2] = [(&page, &[("do", "test")]), (&replay, &[])];
    for (to, fields) in sent {
        let refused = app.send(&session, &page, to, fields).await?;
        assert_eq!(refused.status, 429, "{to}: {}", refused.text);
        refused.assert_has(&[
            "Too many requests",
            "Your organization may request 30 a minute",
            "try again in a minute",
        ]);
    }
    Ok(())
}

#[tokio::test]
async fn webhook_that_is_turned_off_has_no_button_that_sends() -> Result<()> {
    for is_enabled in [true, false] {
        let (app, session) = app_with(is_enabled, details(Some(json!({})))).await?;
        let page = format!("/console/webhooks/{TICKET}");
        let text = app.get(&session, &page).await?.text;
        assert_eq!(text.contains("value=\"test\""), is_enabled, "{text}");
        assert_eq!(text.contains(REPLAY), is_enabled, "{text}");
        assert_eq!(text.contains("No message can be sent until the webhook is turned on."), !is_enabled);
        let text = app.get(&session, &format!("{page}/deliveries/{TICKET}")).await?.text;
        assert_eq!(text.contains(REPLAY), is_enabled, "{text}");
        assert_eq!(text.contains("when the webhook is turned on"), !is_enabled, "{text}");
    }
    Ok(())
}

#[tokio::test]
async fn erased_message_has_no_button_that_sends_it_again() -> Result<()> {
    let (app, session) = app_with(true, details(None)).await?;
    let text = app.get(&session, &format!("/console/webhooks/{TICKET}/deliveries/{TICKET}")).await?.text;
    assert!(!text.contains(REPLAY) && text.contains("It cannot be sent again"), "{text}");
    Ok(())
}

#[tokio::test]
async fn list_of_webhooks_says_that_it_is_cut() -> Result<()> {
    let (app, session) = app_with(true, details(None)).await?;
    for has_more in [false, true] {
        let mut list = page_of(&[webhook(true)]);
        list["page_info"]["has_next_page"] = json!(has_more);
        app.services.answer("/internal/v1/webhooks?", 200, list);
        let text = app.get(&session, "/console/webhooks").await?.text;
        assert_eq!(text.contains("Only the newest 1 webhooks are listed"), has_more, "{text}");
    }
    Ok(())
}

#[tokio::test]
async fn refused_cursor_of_messages_is_named_above_the_first_page() -> Result<()> {
    let (app, session) = app_with(true, details(None)).await?;
    let path = format!("/internal/v1/webhooks/{TICKET}/deliveries?limit=25&status=failed&cursor=");
    app.services.refuse(&path, 400, "invalid-cursor");
    let page = app.get(&session, &format!("/console/webhooks/{TICKET}?status=failed&cursor=old")).await?;
    assert_eq!(page.status, 400, "{}", page.text);
    let row = format!("id=\"delivery-{TICKET}\"");
    page.assert_has(&["id=\"cursor-fault\"", "belongs to another list", row.as_str()]);
    Ok(())
}
