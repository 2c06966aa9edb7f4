//! Receipts, tickets and evaluations: exactly the documented members.

use anyhow::{Context, Result, ensure};
use assay_platform::runtime::now;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Api, Cases, Stack, by_ai, conversation, edited, expect_members, set, text, unset};

/// Scores are rounded to one decimal; a little more for the arithmetic of floating point.
const HALF_A_STEP: f64 = 0.0501;

/// The shape of the responses.
pub async fn run(stack: &Stack) -> Result<()> {
    let api = stack.api()?;
    api.register("bot").await?;
    let mut cases = Cases::default();
    cases.check("receipt and ticket", receipt_and_ticket(&api).await);
    cases.check("a ticket without a subject", without_subject(&api).await);
    cases.check("unknown ids", unknown_ids(&api).await);
    cases.check("an evaluation", scored(&api).await);
    cases.check("different conversations get different scores", different_scores(&api).await);
    cases.check("without an AI agent", not_applicable(&api, &conversation("without-ai-agent")).await);
    cases.check(
        "without a customer",
        not_applicable(&api, &conversation_of_an_ai_agent("without-customer")).await,
    );
    cases.finish()
}

/// `GET /v1/tickets/{id}/transcript`: the items as they were sent, under an entity tag.
pub async fn transcript(stack: &Stack) -> Result<()> {
    let api = stack.api()?;
    let agent = api.register("transcript-bot").await?;
    let body = edited(by_ai("transcript", "transcript-bot"), &[set("/messages/2/kind", "comment")]);
    let id = api.import(&body).await?;
    let path = format!("/v1/tickets/{id}/transcript");
    let reply = api.get(&path).await?;
    let transcript = reply.expect(200)?;
    ensure!(transcript["ticket_id"] == id && transcript["external_id"] == "transcript", "{transcript}");
    ensure!(transcript["agents"][0]["id"] == agent.as_str(), "{}", transcript["agents"]);
    let (sent, kept) = (body["messages"].as_array(), transcript["messages"].as_array());
    let (sent, kept) = (sent.context("no messages")?, kept.context("no messages")?);
    ensure!(sent.len() == kept.len(), "{} of {} messages", kept.len(), sent.len());
    for (sent, kept) in sent.iter().zip(kept) {
        for name in ["external_id", "timestamp", "content"] {
            ensure!(sent[name] == kept[name], "{name}: {kept}");
        }
    }
    ensure!(kept[2]["kind"] == "comment" && kept[1]["author"]["id"] == agent.as_str(), "{transcript}");
    let tag = reply.header("etag");
    ensure!(!tag.is_empty(), "no entity tag");
    let unchanged = api.reply(api.request(Method::GET, &path).header("If-None-Match", tag)).await?;
    unchanged.expect_status(304)?;
    ensure!(unchanged.body.is_empty(), "{}", unchanged.text());
    Ok(())
}

async fn receipt_and_ticket(api: &Api) -> Result<()> {
    let before = now().as_millis();
    let subject = "Wo ist mein Paket? 📦";
    let edits = [set("/source", "zendesk"), set("/source_account_id", "eu"), set("/subject", subject)];
    let body = edited(conversation("T-1"), &edits);
    let reply = api.post("/v1/assess", &body).await?;
    let receipt = reply.expect(202)?;
    let id = text(&receipt, "id")?;
    let expected = json!({"id": id, "external_ticket_id": "T-1", "source": "zendesk", "status": "accepted"});
    ensure!(receipt == expected, "receipt: {receipt}");
    ensure!(is_uuid_v7(&id), "{id} is no UUIDv7");
    let location = reply.header("location");
    ensure!(location == format!("/v1/tickets/{id}"), "Location: {location}");
    ensure!(reply.header("content-type").starts_with("application/json"), "{}", reply.header("content-type"));
    // Read at once: 202 means durable.
    let ticket = api.get(location).await?.expect(200)?;
    let created_at = ticket["created_at"].as_i64().context("created_at")?;
    let expected = json!({"id": id, "external_id": "T-1", "subject": subject, "created_at": created_at});
    ensure!(ticket == expected, "ticket: {ticket}");
    ensure!((before..=now().as_millis()).contains(&created_at), "created_at, after {before}: {ticket}");
    let default = api.post("/v1/assess", &conversation("T-1")).await?.expect(202)?;
    ensure!(default["source"] == "custom", "default source: {default}");
    Ok(())
}

async fn without_subject(api: &Api) -> Result<()> {
    for (ticket, edits) in
        [("no-subject", vec![unset("/subject")]), ("empty-subject", vec![set("/subject", "")])]
    {
        let id = api.import(&edited(conversation(ticket), &edits)).await?;
        let ticket = api.get(&format!("/v1/tickets/{id}")).await?.expect(200)?;
        ensure!(ticket["subject"] == "", "{ticket}");
    }
    Ok(())
}

async fn unknown_ids(api: &Api) -> Result<()> {
    let id = api.import(&conversation("known")).await?;
    let long = "x".repeat(2_000);
    let (upper, without_hyphens) = (id.to_uppercase(), id.replace('-', ""));
    for id in [
        "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11",
        "1",
        "known",
        "%00",
        "%FF",
        "..%2f..",
        "'",
        long.as_str(),
        upper.as_str(),
        without_hyphens.as_str(),
    ] {
        for part in ["", "/evaluation", "/transcript"] {
            api.get(&format!("/v1/tickets/{id}{part}")).await?.problem(404, "ticket-not-found")?;
        }
    }
    Ok(())
}

async fn scored(api: &Api) -> Result<()> {
    let id = api.import(&with_ai("scored", "Thank you, that solved it!")).await?;
    let evaluation = api.evaluation(&id).await?;
    ensure!(evaluation["status"] == "scored", "{evaluation}");
    ensure!(evaluation["ticket_id"] == id && evaluation["external_ticket_id"] == "scored", "{evaluation}");
    ensure!(evaluation["id"].as_str().is_some_and(is_uuid_v7), "evaluation id: {}", evaluation["id"]);
    let axis = &evaluation["axis"];
    let dimensions = ["resolution_accuracy", "interaction_effort", "handoff_smoothness"];
    let mut sum = 0.0;
    for name in dimensions {
        let dimension = &axis["dimensions"][name];
        let score = dimension["score"].as_f64().with_context(|| format!("{name}: {axis}"))?;
        ensure!((1.0..=5.0).contains(&score), "{name}: {score}");
        ensure!(!text(dimension, "reason")?.is_empty(), "{name} has no reason");
        sum += score;
    }
    let score = axis["score"].as_f64().context("axis score")?;
    ensure!((score - sum / 3.0).abs() < HALF_A_STEP, "{score} is not the mean of {axis}");
    evidence_is_quoted(&evaluation)?;
    expect_members(
        &evaluation,
        "id ticket_id created_at external_ticket_id status schema_version transcript_sha256 language ai_involvement \
         ai_tools axis resolution charge handoff sentiment effort counts timeline evidence flags scorer",
    )?;
    // A second read is identical.
    ensure!(api.evaluation(&id).await? == evaluation, "two reads differ");
    Ok(())
}

/// Every quote is part of the message it refers to.
fn evidence_is_quoted(evaluation: &Value) -> Result<()> {
    let sent = with_ai("scored", "Thank you, that solved it!");
    let evidence = evaluation["evidence"].as_array().context("no evidence")?;
    ensure!(!evidence.is_empty(), "no evidence");
    for item in evidence {
        let mut messages = sent["messages"].as_array().into_iter().flatten();
        let message = messages.find(|message| message["external_id"] == item["message_external_id"]);
        let content =
            message.and_then(|message| message["content"].as_str()).context("evidence of no message")?;
        let at = |member: &str| usize::try_from(item[member].as_u64().unwrap_or(u64::MAX));
        let quote = content.get(at("start")?..at("end")?);
        ensure!(quote.is_some() && item["quote"].as_str() == quote, "{item} in {content:?}");
    }
    Ok(())
}

async fn different_scores(api: &Api) -> Result<()> {
    let good = api.import(&with_ai("good", "Perfect, thank you so much, that solved it!")).await?;
    let bad = api
        .import(&with_ai("bad", "No, that is wrong and useless. I want to talk to a human being!"))
        .await?;
    let score = async |id: &str| {
        let evaluation = api.evaluation(id).await?;
        evaluation["axis"]["score"].as_f64().with_context(|| format!("no score: {evaluation}"))
    };
    let (good, bad) = (score(&good).await?, score(&bad).await?);
    ensure!(good > bad, "a solved issue has {good}, a rejected answer {bad}");
    Ok(())
}

/// The example, with an AI agent as the author of every message.
fn conversation_of_an_ai_agent(ticket: &str) -> Value {
    let authors = ["/messages/0/author", "/messages/1/author", "/messages/2/author"];
    let edits = authors.map(|author| set(author, json!({"type": "ai", "external_id": "bot"})));
    edited(conversation(ticket), &edits)
}

/// AXIS is absent, not 0; the audit is present.
async fn not_applicable(api: &Api, body: &Value) -> Result<()> {
    let evaluation = api.evaluation(&api.import(body).await?).await?;
    ensure!(evaluation["status"] == "not_applicable" && evaluation["axis"].is_null(), "{evaluation}");
    ensure!(!text(&evaluation["resolution"], "reason")?.is_empty(), "{evaluation}");
    Ok(())
}

fn with_ai(ticket: &str, last_words: &str) -> Value {
    let edits = [set("/messages/1/ai_tool", "zendesk"), set("/messages/2/content", last_words)];
    edited(by_ai(ticket, "bot"), &edits)
}

/// RFC 9562, section 5.7: version 7, variant 10.
fn is_uuid_v7(text: &str) -> bool {
    let bytes = text.as_bytes();
    text.len() == 36
        && text == text.to_lowercase()
        && bytes.iter().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => *byte == b'-',
            14 => *byte == b'7',
            19 => b"89ab".contains(byte),
            _ => byte.is_ascii_hexdigit(),
        })
}
