//! Creating and refusing endpoints.

use anyhow::{Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use super::EVENTS;
use crate::harness::{Api, Cases, PrivateStack, Stack, resolved_by, text};

/// Refused URLs, and the limit of endpoints.
pub async fn refusals(stack: &Stack) -> Result<()> {
    let api = stack.api()?;
    let mut cases = Cases::default();
    // The rest of 127.0.0.0/8 is not in `webhooks.allowed_networks`. Every rule: the tests of `webhooks::domain::address`.
    for url in ["http://127.0.0.2/", "hooks.example.com"] {
        cases.check(url, refused(&api, url).await);
    }
    cases.check("invalid bodies", invalid_bodies(&api).await);
    cases.check("limit", limit(&stack.api_of("collector").await?).await);
    cases.finish()
}

async fn refused(api: &Api, url: &str) -> Result<()> {
    let body = json!({"url": url, "events": EVENTS});
    let problem = api.post("/v1/webhooks", &body).await?.problem(400, "webhook-address-refused")?;
    ensure!(problem["errors"][0]["pointer"] == "/url", "{problem}");
    Ok(())
}

async fn invalid_bodies(api: &Api) -> Result<()> {
    let body = json!({"events": ["evaluation.completed", "webhook.test"], "axis_low_score_below": 7});
    let reply = api.post("/v1/webhooks", &body).await?;
    for pointer in ["/url", "/events/1", "/axis_low_score_below"] {
        reply.error_at(pointer)?;
    }
    api.post("/v1/webhooks", &json!({"url": "https://hooks.example.com/", "events": []}))
        .await?
        .error_at("/events")?;
    let created = create(api, "https://hooks.example.com/").await?;
    let path = format!("/v1/webhooks/{}", text(&created, "id")?);
    let change = |body: Value| api.reply(api.request(Method::PATCH, &path).json(&body));
    change(json!({"enabled": 1})).await?.error_at("/enabled")?;
    change(json!({"url": "https://10.0.0.1/"})).await?.problem(400, "webhook-address-refused")?;
    let read = api.get(&path).await?.expect(200)?;
    ensure!(read["url"] == "https://hooks.example.com/" && read.get("secret").is_none(), "{read}");
    Ok(())
}

async fn limit(api: &Api) -> Result<()> {
    for number in 0..20 {
        create(api, &format!("https://hooks.example.com/{number}")).await?;
    }
    let body = json!({"url": "https://hooks.example.com/", "events": EVENTS});
    let send =
        || api.reply(api.request(Method::POST, "/v1/webhooks").header("idempotency-key", "21").json(&body));
    send().await?.problem(409, "webhook-limit-reached")?;
    let list = api.get("/v1/webhooks?limit=1").await?.expect(200)?;
    let id = text(&list["data"][0], "id")?;
    api.delete(&format!("/v1/webhooks/{id}")).await?.expect_status(204)?;
    // A refused request has no effect; its idempotency key stays free.
    send().await?.expect(201)?;
    Ok(())
}

async fn create(api: &Api, url: &str) -> Result<Value> {
    api.post("/v1/webhooks", &json!({"url": url, "events": EVENTS})).await?.expect(201)
}

/// With webhooks turned off their routes say so, and the rest works.
pub async fn turned_off(stack: &mut PrivateStack) -> Result<()> {
    stack.start().await?;
    stack.kill(&["scoring-worker", "export-worker", "gateway"]);
    stack.start_with(&[("ASSAY_SERVICES__WEBHOOKS_URL", "")]).await?;
    let api = stack.api()?;
    let body = json!({"url": "https://hooks.example.com/", "events": EVENTS});
    api.post("/v1/webhooks", &body).await?.problem(404, "webhooks-off")?;
    api.get("/v1/webhooks").await?.problem(404, "webhooks-off")?;
    api.register("hooked-bot").await?;
    let ticket = api.import(&resolved_by("T-off", "hooked-bot")).await?;
    api.evaluation(&ticket).await?;
    api.export(&json!({"kind": "axis"})).await?;
    Ok(())
}
