//! `POST /v1/agents`; and AI authors of messages, which refer to agents.

use anyhow::{Context, Result, ensure};
use assay_platform::runtime::now;
use serde_json::{Value, json};

use crate::harness::{Api, Cases, Reply, Stack, by_ai, conversation, edited, set, text};

/// Registration and use.
pub async fn run(stack: &Stack) -> Result<()> {
    let api = stack.api()?;
    let mut cases = Cases::default();
    cases.check("a new agent", created(&api).await);
    cases.check("refused bodies", refused(&api).await);
    cases.check("accepted bodies", accepted(&api).await);
    cases.check("a repeated external_id", repeated(&api).await);
    cases.check("use", used(&api).await);
    cases.check("unknown agents", unknown_or_mismatched(&api).await);
    cases.check("an agent registered after a refusal", registered_later(&api).await);
    cases.finish()
}

async fn created(api: &Api) -> Result<()> {
    let before = now().as_millis();
    let body = json!({"external_id": "a-1", "name": "Büro-Bot", "type": "custom"});
    let reply = api.post("/v1/agents", &body).await?;
    let agent = reply.expect(201)?;
    let (id, created_at) = (text(&agent, "id")?, agent["created_at"].as_i64().context("created_at")?);
    let expected = json!({"id": id, "external_id": "a-1", "name": "Büro-Bot", "type": "custom", "created_at": created_at});
    ensure!(agent == expected, "{agent}");
    ensure!((before..=now().as_millis()).contains(&created_at), "created_at, after {before}: {agent}");
    let location = reply.header("location");
    ensure!(location == format!("/v1/agents/{id}"), "Location: {location:?}");
    Ok(())
}

async fn refused(api: &Api) -> Result<()> {
    let agent = |member: &str, value: Value| {
        let mut agent = json!({"external_id": "refused", "name": "Refused", "type": "custom"});
        agent[member] = value;
        agent
    };
    let mut table = vec![
        (json!({"name": "Refused"}), "/external_id"),
        (json!({"external_id": "refused"}), "/name"),
        (json!({}), "/name"),
        (json!([]), ""),
        (json!("agent"), ""),
    ];
    for (member, pointer) in [("external_id", "/external_id"), ("name", "/name")] {
        let (long, longer) = ("x".repeat(1_025), "x".repeat(10_240));
        for value in [json!(""), json!(null), json!(1), json!({}), json!("a\0"), json!(long), json!(longer)] {
            table.push((agent(member, value), pointer));
        }
    }
    for value in [json!(""), json!("Custom"), json!("zendesk"), json!(1)] {
        table.push((agent("type", value), "/type"));
    }
    let mut cases = Cases::default();
    for (body, pointer) in table {
        let reply = api.post("/v1/agents", &body).await?;
        let name: String = body.to_string().chars().take(100).collect();
        cases.check(name, reply.error_at(pointer).map(drop));
    }
    // A refused request does not use the external id up.
    cases.check("afterwards", api.register("refused").await.map(drop));
    cases.finish()
}

async fn accepted(api: &Api) -> Result<()> {
    let longest = "😀".repeat(1_024);
    for body in [
        json!({"external_id": "no-type", "name": "x"}),
        json!({"external_id": longest, "name": longest}),
        json!({"external_id": "unknown-member", "name": "x", "tool": "y"}),
        json!({"external_id": "NO-TYPE", "name": "x"}),
        json!({"external_id": " ", "name": " "}),
    ] {
        let agent = api.post("/v1/agents", &body).await?.expect(201)?;
        ensure!(agent["type"] == "custom" && agent["external_id"] == body["external_id"], "{agent}");
    }
    Ok(())
}

async fn repeated(api: &Api) -> Result<()> {
    let id = api.register("repeated").await?;
    for name in ["Agent repeated", "Another name"] {
        let body = json!({"external_id": "repeated", "name": name});
        let problem = api.post("/v1/agents", &body).await?.problem(409, "duplicate-agent")?;
        ensure!(problem["errors"][0]["pointer"] == "/external_id", "{problem}");
    }
    // The first agent is unchanged.
    import(api, "repeated", &json!({"type": "ai", "id": id, "external_id": "repeated"}))
        .await?
        .expect(202)
        .map(drop)
}

async fn import(api: &Api, ticket: &str, author: &Value) -> Result<Reply> {
    api.post("/v1/assess", &edited(conversation(ticket), &[set("/messages/1/author", author.clone())])).await
}

/// Usable immediately, by either id or both; the evaluation names the agent.
async fn used(api: &Api) -> Result<()> {
    for number in 0..20 {
        let external_id = format!("used-{number}");
        let id = api.register(&external_id).await?;
        for (kind, author) in [
            ("id", json!({"type": "ai", "id": id})),
            ("external_id", json!({"type": "ai", "external_id": external_id})),
            ("both", json!({"type": "ai", "id": id, "external_id": external_id})),
        ] {
            import(api, &format!("{external_id} by {kind}"), &author).await?.expect(202)?;
        }
    }
    let id = api.register("named").await?;
    let ticket = import(api, "named", &json!({"type": "ai", "id": id})).await?.expect(202)?;
    let evaluation = api.evaluation(&text(&ticket, "id")?).await?;
    let tool = &evaluation["ai_tools"][0];
    ensure!(tool["agent_id"] == id.as_str() && tool["agent_external_id"] == "named", "{tool}");
    Ok(())
}

async fn unknown_or_mismatched(api: &Api) -> Result<()> {
    let (one, other) = (api.register("one").await?, api.register("other").await?);
    let (mismatch, unknown) = ((400, "agent-mismatch"), (404, "unknown-agent"));
    let mut cases = Cases::default();
    for (author, (status, code)) in [
        (json!({"type": "ai", "id": one, "external_id": "other"}), mismatch),
        (json!({"type": "ai", "id": other, "external_id": "one"}), mismatch),
        (json!({"type": "ai", "external_id": "nobody"}), unknown),
        (json!({"type": "ai", "external_id": "One"}), unknown),
        (json!({"type": "ai", "id": "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11"}), unknown),
        (json!({"type": "ai", "id": "one"}), unknown),
        (json!({"type": "ai", "id": one.to_uppercase()}), unknown),
        (
            json!({"type": "ai", "id": "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11", "external_id": "nobody"}),
            unknown,
        ),
    ] {
        let reply = import(api, "unknown", &author).await?;
        cases.check(&author, reply.problem(status, code).and_then(|problem| expect_message_named(&problem)));
    }
    let afterwards = import(api, "unknown", &json!({"type": "ai", "id": one})).await?;
    cases.check("afterwards", afterwards.expect(202).map(drop));
    cases.finish()
}

fn expect_message_named(problem: &Value) -> Result<()> {
    let pointer = problem["errors"][0]["pointer"].as_str().unwrap_or_default();
    ensure!(pointer.starts_with("/messages/1/author"), "the message is not named: {problem}");
    Ok(())
}

/// An unknown agent is not cached.
async fn registered_later(api: &Api) -> Result<()> {
    for number in 0..10 {
        let external_id = format!("later-{number}");
        let body = by_ai(&external_id, &external_id);
        api.post("/v1/assess", &body).await?.problem(404, "unknown-agent")?;
        api.register(&external_id).await?;
        api.import(&body).await?;
    }
    Ok(())
}
