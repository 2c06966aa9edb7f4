//! `Idempotency-Key` on the four creating operations.

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Api, Cases, Reply, Stack, conversation};

/// Two different bodies for each of the operations.
fn operations() -> [(&'static str, u16, Value, Value); 4] {
    let webhook =
        |path: &str| json!({"url": format!("https://hooks.example.com/{path}"), "events": ["export.failed"]});
    [
        ("/v1/assess", 202, conversation("idempotent"), conversation("another")),
        (
            "/v1/agents",
            201,
            json!({"external_id": "a", "name": "A"}),
            json!({"external_id": "b", "name": "B"}),
        ),
        ("/v1/evaluations/exports", 201, json!({"kind": "axis"}), json!({"kind": "resolution_audit"})),
        ("/v1/webhooks", 201, webhook("once"), webhook("twice")),
    ]
}

/// The same key: the same response, or 422 for another body.
pub async fn run(stack: &Stack) -> Result<()> {
    let api = stack.api()?;
    let stranger = stack.api_of("stranger").await?;
    let mut cases = Cases::default();
    for (path, status, body, other) in operations() {
        cases.check(format!("{path}: repeated"), repeated(&api, path, status, &body, &other).await);
        cases
            .check(format!("{path}: another organization"), elsewhere(&stranger, path, status, &other).await);
        cases.check(format!("{path}: invalid keys"), invalid_keys(&api, path, &body).await);
    }
    cases.check("a refusal does not use a key up", after_refusal(&api).await);
    cases.check("at once", at_once(&api).await);
    cases.finish()
}

async fn send(api: &Api, path: &str, key: &str, body: &Value) -> Result<Reply> {
    api.reply(api.request(Method::POST, path).header("idempotency-key", key).json(body)).await
}

async fn repeated(api: &Api, path: &str, status: u16, body: &Value, other: &Value) -> Result<()> {
    let first = send(api, path, "key-1", body).await?;
    first.expect(status)?;
    for _ in 0..3 {
        let again = send(api, path, "key-1", body).await?;
        again.expect(status)?;
        ensure!(again.body == first.body, "{} instead of {}", again.text(), first.text());
        for name in ["location", "content-type"] {
            let (header, earlier) = (again.header(name), first.header(name));
            ensure!(header == earlier && !header.is_empty(), "{name}: {header:?} instead of {earlier:?}");
        }
    }
    send(api, path, "key-1", other).await?.problem(422, "idempotency-conflict")?;
    // The refused body had no effect; keys are case-sensitive.
    send(api, path, "KEY-1", other).await?.expect(status).map(drop)
}

/// The key of another organization is free.
async fn elsewhere(stranger: &Api, path: &str, status: u16, other: &Value) -> Result<()> {
    send(stranger, path, "key-1", other).await?.expect(status).map(drop)
}

async fn invalid_keys(api: &Api, path: &str, body: &Value) -> Result<()> {
    let too_long = "k".repeat(256);
    for key in ["", "two words", "tab\tbed", too_long.as_str()] {
        let reply = send(api, path, key, body).await?;
        reply.error_at("Idempotency-Key").with_context(|| format!("{key:?}"))?;
    }
    let twice = api
        .request(Method::POST, path)
        .header("idempotency-key", "a")
        .header("idempotency-key", "b")
        .json(body);
    api.reply(twice).await?.error_at("Idempotency-Key").context("two keys").map(drop)
}

async fn after_refusal(api: &Api) -> Result<()> {
    for (path, status, body) in [
        ("/v1/assess", 202, conversation("after-refusal")),
        ("/v1/agents", 201, json!({"external_id": "after-refusal", "name": "A"})),
        ("/v1/evaluations/exports", 201, json!({"kind": "axis", "filters": {"from": 7}})),
    ] {
        send(api, path, "refused", &json!({})).await?.problem(400, "invalid-request")?;
        send(api, path, "refused", &body).await?.expect(status)?;
    }
    Ok(())
}

/// Of many concurrent equal requests one is executed; the others get its response.
async fn at_once(api: &Api) -> Result<()> {
    let longest_key = "k".repeat(255);
    for (path, status, body, duplicate) in [
        ("/v1/assess", 202, conversation("at-once"), Some("duplicate-import")),
        ("/v1/agents", 201, json!({"external_id": "at-once", "name": "A"}), Some("duplicate-agent")),
        ("/v1/evaluations/exports", 201, json!({"kind": "axis", "filters": {"from": 8}}), None),
    ] {
        let replies = try_join_all((0..20).map(|_| send(api, path, &longest_key, &body))).await?;
        for reply in &replies {
            reply.expect(status)?;
            ensure!(reply.body == replies[0].body, "{path}: {} and {}", reply.text(), replies[0].text());
        }
        if let Some(code) = duplicate {
            api.post(path, &body).await?.problem(409, code).context("without the key")?;
        }
    }
    Ok(())
}
