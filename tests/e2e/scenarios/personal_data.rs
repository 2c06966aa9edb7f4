//! Texts and names of customers and agents are never logged, whatever goes wrong.

use anyhow::{Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Api, PrivateStack, Stack, conversation, edited, set, until};

/// Part of every text that must not be logged.
const MARKER: &str = "Xq7Zw9personal";

/// The default filter, with all levels of our crates.
const FILTER: &str = "info,actix_server=warn,actix_http=off,lapin=error,assay=trace,assay_gateway=trace,\
                      assay_ingest=trace,assay_agent_registry=trace,assay_scoring_worker=trace,assay_export=trace,\
                      assay_export_worker=trace,assay_webhooks=trace,assay_platform=trace,assay_messaging=trace,assay_clients=trace";

/// Valid and invalid requests, outages, deletions and exports, all with marked texts.
pub async fn run(stack: &mut PrivateStack) -> Result<()> {
    stack.start_with(&[("ASSAY_TELEMETRY__FILTER", FILTER)]).await?;
    let api = stack.api()?;
    let bot = json!({"external_id": marked("bot"), "name": marked("Bot")});
    api.post("/v1/agents", &bot).await?.expect(201)?;
    api.post("/v1/agents", &bot).await?.problem(409, "duplicate-agent")?;

    let deleted = api.import(&marked_conversation("deleted")).await?;
    api.evaluation(&deleted).await?;
    api.post("/v1/assess", &marked_conversation("deleted")).await?.problem(409, "duplicate-import")?;
    bad_requests(&api).await?;
    let kept = outage(stack).await?;
    let api = stack.api()?;
    api.evaluation(&kept).await?;
    for kind in ["axis", "resolution_audit"] {
        let file = api.file(&api.export(&json!({"kind": kind})).await?).await?;
        ensure!(String::from_utf8_lossy(&file).contains(MARKER), "the file does not hold what was sent");
    }
    api.delete(&format!("/v1/tickets/{deleted}")).await?.expect_status(204)?;
    until("the log of the deletion", async || {
        let logs = stack.read_logs()?;
        let is_logged = |(_, log): &(&str, String)| log.contains("ticket deleted") && log.contains(&deleted);
        Ok(logs.iter().any(is_logged).then_some(()))
    })
    .await?;
    no_log_holds_a_marker(stack)
}

/// Requests during and after an outage; returns the ticket accepted meanwhile.
async fn outage(stack: &mut PrivateStack) -> Result<String> {
    let api = stack.api()?;
    let kept = api.import(&marked_conversation("kept")).await?;
    stack.kill(&["ingest", "export"]);
    // The standalone does not respond at all.
    for body in [marked_conversation("lost"), marked_conversation("deleted")] {
        if let Ok(reply) = api.post("/v1/assess", &body).await {
            reply.problem(503, "unavailable")?;
        }
    }
    if let Ok(reply) = api.post("/v1/evaluations/exports", &json!({"kind": marked("axis")})).await {
        ensure!(reply.status >= 400, "accepted: {}", reply.text());
    }
    stack.start().await?;
    Ok(kept)
}

async fn bad_requests(api: &Api) -> Result<()> {
    let good = marked_conversation("bad");
    let edits = [
        set("/messages/0/author/type", marked("type")),
        set("/messages/0/kind", marked("kind")),
        set("/messages/0/timestamp", marked("timestamp")),
        set("/messages/1/external_id", marked("m-0")),
        set("/messages/0/content", format!("{}\0", marked("content"))),
        set("/subject", format!("{}\0", marked("subject"))),
        set("/messages/0/author/name", marked(&"name".repeat(600))),
        set("/messages/1/author", json!({"type": "ai", "external_id": marked("unknown agent")})),
        set("/source", json!({"name": marked("source")})),
    ];
    for edit in edits {
        let reply = api.post("/v1/assess", &edited(good.clone(), std::slice::from_ref(&edit))).await?;
        ensure!(matches!(reply.status, 400 | 404), "{edit:?}: {} {}", reply.status, reply.text());
    }
    let text = good.to_string();
    let broken = [
        text.as_bytes()[..text.len() / 2].to_vec(),
        text.replace("ticket_id", "ticket_id\": \"\\ud800").into_bytes(),
        [marked("{").as_bytes(), &[0xff, 0xfe]].concat(),
    ];
    for body in broken {
        api.post_bytes("/v1/assess", body).await?.problem(400, "malformed-json")?;
    }
    let typed = api.request(Method::POST, "/v1/assess").header("content-type", "text/plain");
    api.reply(typed.body(text.clone())).await?.problem(415, "unsupported-media-type")?;
    let send_keyed = |ticket: &str| {
        let request =
            api.request(Method::POST, "/v1/assess").header("idempotency-key", format!("key-{MARKER}"));
        api.reply(request.json(&marked_conversation(ticket)))
    };
    send_keyed("keyed").await?.expect_status(202)?;
    send_keyed("keyed otherwise").await?.problem(422, "idempotency-conflict")?;
    for path in ["/v1/tickets", "/v1/evaluations/exports", "/v1/downloads", "/v1/nothing"] {
        api.get(&format!("{path}/{MARKER}?name={MARKER}&cursor={MARKER}&limit={MARKER}")).await?;
        api.delete(&format!("{path}/{MARKER}")).await?;
    }
    api.get(&format!("/v1/evaluations/exports?cursor={MARKER}")).await?.problem(400, "invalid-cursor")?;
    api.post("/v1/agents", &json!({"external_id": "x", "name": {"first": marked("name")}})).await?;
    Ok(())
}

fn no_log_holds_a_marker(stack: &Stack) -> Result<()> {
    let mut leaks = Vec::new();
    for (process, log) in stack.read_logs()? {
        ensure!(!log.is_empty(), "{process} has logged nothing");
        let found = log.lines().filter(|line| line.contains(MARKER));
        leaks.extend(found.map(|line| format!("{process}: {line}")));
    }
    ensure!(leaks.is_empty(), "{} lines with personal data:\n{}", leaks.len(), leaks.join("\n"));
    Ok(())
}

fn marked_conversation(ticket: &str) -> Value {
    let ann = json!({"type": "contact", "external_id": marked("ann"), "name": marked("Ann")});
    let bot = json!({"type": "ai", "external_id": marked("bot"), "name": marked("Robot")});
    let edits = [
        set("/ticket_id", marked(ticket)),
        set("/subject", marked("Where is my refund?")),
        set("/source", marked("source")),
        set("/source_account_id", marked("account")),
        set("/messages/0/author", ann.clone()),
        set("/messages/0/external_id", marked("m-0")),
        set("/messages/0/content", marked("Where is my refund?")),
        set("/messages/1/author", bot),
        set("/messages/1/content", marked("It was sent today.")),
        set("/messages/2/author", ann),
        set("/messages/2/content", marked("Great, thank you, that solved it!")),
    ];
    edited(conversation(ticket), &edits)
}

fn marked(text: &str) -> String {
    format!("{text} {MARKER}")
}
