//! The page of a conversation: refused parameters, and what is left when the transcript has expired.

use anyhow::Result;
use serde_json::json;

use crate::test_app::{TICKET, TestApp, evaluation, transcript};

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
    app.services.refuse(&format!("/internal/v1/tickets/{TICKET}/transcript"), 404, "transcript-expired");
    let found = evaluation("m-2", "Hello <you>", 0);
    app.services.answer(&format!("/internal/v1/tickets/{TICKET}/evaluation"), 200, found);
    let page = app.get(&session, &format!("/console/conversations/{TICKET}")).await?;
    assert_eq!(page.status, 200, "{}", page.text);
    page.assert_has(&[
        "id=\"expired\"",
        "is kept with these quotes",
        "<b>AI agent</b>",
        "<mark>Hello &#60;you&#62;</mark>",
        "href=\"#s-r-0-agentapologised\"",
        "href=\"#q1\"",
    ]);
    Ok(())
}

/// A message of three parts with two quotes. The first one uses up what is kept of quotes, so that the second one is in a cut.
#[tokio::test]
async fn page_of_a_message_links_to_its_quote_and_keeps_the_list() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.answer_all();
    let long = "a".repeat(130_000);
    let mut found = evaluation("m-2", &long[..32_000], 30_000);
    let second = json!({ "message_external_id": "m-2", "author_type": "ai", "quote": "aaaaa",
        "start": 120_010, "end": 120_015 });
    found["evidence"] = json!([found["evidence"][0], second]);
    found["axis"]["dimensions"]["resolution_accuracy"]["signals"][0]["evidence"] = json!([0, 1]);
    app.answer_conversation(transcript("Refund", &["Hi", &long]), found);
    let path = format!("/console/conversations/{TICKET}");
    let text = app.get(&session, &format!("{path}?charge=disputed")).await?.text;
    let link = format!("href=\"{path}/messages/2?charge=disputed&#38;part=3#q2\"");
    assert!(text.contains(&link), "{link}: {text}");
    let page = app.get(&session, &format!("{path}/messages/2?charge=disputed&part=3")).await?;
    page.assert_has(&[
        format!("<a href=\"{path}?charge=disputed#m2\">Back to the conversation"),
        format!("id=\"q2\" href=\"{path}?charge=disputed#s-r-0-agentapologised\""),
        format!("href=\"{path}/messages/2?charge=disputed&#38;part=2\">Previous part"),
    ]);
    Ok(())
}

#[tokio::test]
async fn handoff_that_is_not_applicable_has_no_band() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.answer_all();
    let mut found = evaluation("m-2", "Hello", 0);
    for (applicable, rating) in [
        (false, "<span class=\"muted\">no handoff</span><b>3.3</b>"),
        (true, "<span class=\"mixed\">mixed</span><b>3.3</b>"),
    ] {
        found["axis"]["dimensions"]["handoff_smoothness"]["applicable"] = json!(applicable);
        app.services.answer(&format!("/internal/v1/tickets/{TICKET}/evaluation"), 200, found.clone());
        let text = app.get(&session, &format!("/console/conversations/{TICKET}")).await?.text;
        let shown = format!("Handoff smoothness</h3>{rating}");
        assert!(text.contains(&shown), "{shown}: {text}");
        assert!(text.contains(&format!("<p>Id <code>{TICKET}</code></p>")), "{text}");
    }
    Ok(())
}
