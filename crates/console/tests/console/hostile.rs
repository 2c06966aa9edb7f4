//! Hostile texts: markup, control characters and very long messages.

use anyhow::Result;
use assay_testkit::Rng;
use serde_json::json;

use crate::test_app::{TICKET, TestApp, evaluation, listed, transcript};

/// The page of a conversation with one quote: id of its message, text, first byte.
async fn conversation_page(subject: &str, texts: &[&str], quote: (&str, &str, usize)) -> Result<String> {
    let (app, session) = TestApp::signed_in().await?;
    app.answer_conversation(transcript(subject, texts), evaluation(quote.0, quote.1, quote.2));
    let page = app.get(&session, &format!("/console/conversations/{TICKET}")).await?;
    assert_eq!(page.status, 200, "{}", page.text);
    Ok(page.text)
}

#[tokio::test]
async fn markup_in_a_transcript_is_text() -> Result<()> {
    let attack = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'</div>";
    let text = conversation_page(attack, &[attack, attack], ("m-2", "<script>alert(1)</script>", 0)).await?;
    assert!(!text.contains("<script>") && !text.contains("<img") && !text.contains("alert(2)>"), "{text}");
    assert!(text.contains("<mark>&#60;script&#62;alert(1)&#60;/script&#62;</mark>"), "{text}");
    assert!(!text.contains("Ann <i>"), "the name of the author in `transcript`");
    Ok(())
}

#[tokio::test]
async fn quote_and_reason_lead_to_each_other() -> Result<()> {
    let text =
        conversation_page("Refund", &["Hi", "Grüße 🎉, I am sorry."], ("m-2", "I am sorry.", 14)).await?;
    assert!(text.contains("<mark>I am sorry.</mark>"), "{text}");
    assert!(text.contains("id=\"q1\" href=\"#s-r-0-agentapologised\""), "{text}");
    assert!(text.contains("id=\"s-r-0-agentapologised\"") && text.contains("href=\"#q1\""));
    Ok(())
}

#[tokio::test]
async fn quote_that_is_not_in_the_transcript_is_not_marked() -> Result<()> {
    let text = conversation_page("Refund", &["Hi", "Hello"], ("m-2", "a forged quote", 0)).await?;
    assert!(!text.contains("<mark>") && !text.contains("href=\"#q"), "{text}");
    Ok(())
}

#[tokio::test]
async fn control_characters_in_a_transcript_are_named() -> Result<()> {
    let text = conversation_page("a\u{202e}b", &["c\u{202e}d\u{2066}", "x"], ("m-2", "x", 0)).await?;
    assert!(!text.contains('\u{202e}') && !text.contains('\u{2066}'));
    assert!(text.contains("title=\"right-to-left override\">RLO</span>"));
    Ok(())
}

#[tokio::test]
async fn fifty_messages_of_80_kb_fit_into_100_kb() -> Result<()> {
    // Pseudo-random letters, which compress badly.
    let mut random = Rng::new(7);
    let mut letter = || char::from(b'0' + random.below(75) as u8);
    let texts: Vec<String> = (0..50).map(|_| (0..80_000).map(|_| letter()).collect()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let quote = &texts[1][40_000..40_020];
    let (app, session) = TestApp::signed_in().await?;
    app.answer_conversation(transcript("Long", &texts), evaluation("m-2", quote, 40_000));
    let bytes = app.weight(&session, &format!("/console/conversations/{TICKET}")).await?;
    assert!(bytes <= 100_000, "{bytes}");
    let text = app.get(&session, &format!("/console/conversations/{TICKET}")).await?.text;
    assert!(text.contains("<mark>") && text.contains("characters more"));
    // Each message has its own pages of up to 60,000 bytes. The quote begins on the first and ends on the second.
    let quote = &texts[1][59_990..60_010];
    let found = evaluation("m-2", quote, 59_990);
    app.services.answer(&format!("/internal/v1/tickets/{TICKET}/evaluation"), 200, found);
    for part in [1, 2] {
        let address = format!("/console/conversations/{TICKET}/messages/2?part={part}");
        let text = app.get(&session, &address).await?.text;
        assert!(!text.contains("characters more") && text.contains(&format!("Part {part} of 2")), "{text}");
        let marked = text.split("<mark>").nth(1).and_then(|rest| rest.split("</mark>").next());
        let half = if part == 1 { &quote[..10] } else { &quote[10..] };
        assert_eq!(marked.map(plain), Some(half.to_owned()));
        assert_eq!(text.contains("Next part"), part == 1);
        assert_eq!(text.contains("Previous part"), part == 2);
    }
    for part in ["0", "3", "x", "18446744073709551615"] {
        let address = format!("/console/conversations/{TICKET}/messages/2?part={part}");
        assert_eq!(app.get(&session, &address).await?.status, 404, "{part}");
    }
    Ok(())
}

/// The text of escaped HTML.
fn plain(html: &str) -> String {
    let html = html.replace("&#60;", "<").replace("&#62;", ">").replace("&#34;", "\"").replace("&#39;", "'");
    html.replace("&#38;", "&")
}

/// Every text of a row is as long as the API allows, and cannot be compressed.
#[tokio::test]
async fn list_of_long_texts_fits_into_100_kb() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    let mut random = Rng::new(7);
    let mut long = |characters: usize| -> String {
        let letter = || char::from_u32(0x4e00 + random.below(20_000) as u32).unwrap_or('x');
        std::iter::repeat_with(letter).take(characters).collect()
    };
    let mut list = listed(&[""; 25], 25, None);
    for row in list["data"].as_array_mut().into_iter().flatten() {
        let ticket = &mut row["ticket"];
        ticket["subject"] = json!(long(1_000));
        ticket["external_id"] = json!(long(1_024));
        ticket["source"] = json!(long(1_024));
        ticket["agents"] = json!([{ "id": TICKET, "external_id": long(1_024), "name": long(255) }]);
    }
    app.services.answer("/internal/v1/evaluations", 200, list);
    let bytes = app.weight(&session, "/console/conversations?column=source&column=tool").await?;
    assert!(bytes <= 100_000, "{bytes}");
    Ok(())
}

/// A message has up to 4 MB, and the name of a control character is longer than the character: its pages show parts.
#[tokio::test]
async fn page_of_a_message_is_bounded() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    let alternating = "\u{202e}\u{202d}".repeat(600_000);
    let texts = ["\u{7f}".repeat(3_900_000), alternating, "&".repeat(3_900_000)];
    for text in &texts {
        app.answer_conversation(transcript("Controls", &[text, "Hello"]), evaluation("m-2", "Hello", 0));
        let page = app.get(&session, &format!("/console/conversations/{TICKET}/messages/1")).await?.text;
        assert!(page.contains("Part 1 of ") && page.len() < 2 * 1024 * 1024, "{}", page.len());
    }
    Ok(())
}

#[tokio::test]
async fn subjects_in_the_list_are_text() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.services.answer("/internal/v1/evaluations", 200, listed(&["<b>bold</b>\u{202e}", ""], 2, None));
    let text = app.get(&session, "/console/conversations").await?.text;
    assert!(text.contains("&#60;b&#62;bold") && !text.contains('\u{202e}'));
    assert!(text.contains("No subject"));
    Ok(())
}

/// The page without the values of its forms' fields, which keep the characters that were typed.
fn outside_fields(page: &str) -> String {
    let mut parts = page.split("value=\"");
    let before_first = parts.next().unwrap_or_default();
    let after_values = parts.map(|part| part.split_once('"').map_or(part, |(_, rest)| rest));
    std::iter::once(before_first).chain(after_values).collect()
}

#[tokio::test]
async fn control_characters_in_names_and_filters_are_named() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.answer_all();
    let mut list = listed(&["One"], 1, None);
    list["data"][0]["ticket"]["source"] = json!("zen\u{202e}desk");
    list["data"][0]["ticket"]["agents"] =
        json!([{ "id": TICKET, "external_id": "bot\u{2060}", "name": "Bot\u{202e}" }]);
    app.services.answer("/internal/v1/evaluations", 200, list);
    let mut found = transcript("Refund", &["Hi", "Hello"]);
    found["agents"] = json!([{ "id": TICKET, "external_id": "bot\u{2060}", "name": "Bot\u{202e}" }]);
    app.services.answer(&format!("/internal/v1/tickets/{TICKET}/transcript"), 200, found);
    let encoded = "%E2%80%AE";
    for path in [
        "/console/conversations?column=source&column=tool".to_owned(),
        format!("/console/conversations?source=a{encoded}b"),
        format!("/console/conversations/{TICKET}?source=a{encoded}b"),
        format!("/console/exports?source=a{encoded}b"),
    ] {
        let text = app.get(&session, &path).await?.text;
        assert!(text.contains("title=\"right-to-left override\">RLO</span>"), "{path}: {text}");
        let outside = outside_fields(&text);
        assert!(!outside.contains('\u{202e}') && !outside.contains('\u{2060}'), "{path}: {outside}");
    }
    Ok(())
}

#[tokio::test]
async fn control_characters_in_a_payload_are_escaped() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    let delivery = json!({
        "id": TICKET, "type": "evaluation.completed", "status": "delivered", "attempts": 1, "created_at": 0,
        "attempt_log": [], "payload": { "subject": "a\u{202e}b" },
    });
    app.answer_webhook();
    app.services.answer(&format!("/internal/v1/webhooks/{TICKET}/deliveries/{TICKET}"), 200, delivery);
    let page = app.get(&session, &format!("/console/webhooks/{TICKET}/deliveries/{TICKET}")).await?;
    assert_eq!(page.status, 200, "{}", page.text);
    assert!(page.text.contains("a\\u202eb") && !page.text.contains('\u{202e}'), "{}", page.text);
    Ok(())
}
