//! The page of a conversation: refused parameters, and what is left when the transcript has expired.

use anyhow::Result;
use serde_json::json;

use crate::test_app::{TICKET, TestApp};

#[tokio::test]
async fn refused_parameters_are_named_on_the_page_of_a_record() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.answer_all();
    app.answer_webhook();
    for (address, fault) in [
        (format!("/console/conversations/{TICKET}?charge=maybe&subject=late"), "charge"),
        (format!("/console/conversations/{TICKET}?nosuch=1"), "nosuch"),
        ("/console/webhooks?status=x".to_owned(), "status"),
        (format!("/console/webhooks/{TICKET}?status=x"), "status"),
        (format!("/console/webhooks/{TICKET}?nosuch=1"), "nosuch"),
    ] {
        let page = app.get(&session, &address).await?;
        assert_eq!(page.status, 400, "{address}: {}", page.text);
        assert!(page.text.contains(&format!("id=\"{fault}-fault\"")), "{address}: {}", page.text);
    }
    let page =
        app.get(&session, &format!("/console/conversations/{TICKET}?charge=maybe&subject=late")).await?;
    assert!(page.text.contains("Refund"), "the conversation is shown all the same");
    let list = page.link("back").unwrap_or_default();
    assert_eq!(list, "/console/conversations?charge=maybe&subject=late", "the list keeps what was asked for");
    Ok(())
}

#[tokio::test]
async fn expired_transcript_leaves_the_quotes_of_the_evaluation() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.answer_all();
    let problem = json!({ "status": 404, "title": "The transcript has expired",
        "type": "urn:assay:problem:transcript-expired", "code": "transcript-expired" });
    app.services.answer(&format!("/internal/v1/tickets/{TICKET}/transcript"), 404, problem);
    let evaluation = crate::test_app::evaluation("m-2", "Hello <you>", 0);
    app.services.answer(&format!("/internal/v1/tickets/{TICKET}/evaluation"), 200, evaluation);
    let page = app.get(&session, &format!("/console/conversations/{TICKET}")).await?;
    assert_eq!(page.status, 200, "{}", page.text);
    for expected in [
        "id=\"expired\"",
        "is kept with these quotes",
        "<b>AI agent</b>",
        "<mark>Hello &#60;you&#62;</mark>",
        "href=\"#s-r-0-agentapologised\"",
        "href=\"#q1\"",
    ] {
        assert!(page.text.contains(expected), "{expected}: {}", page.text);
    }
    Ok(())
}
