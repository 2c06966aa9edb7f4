//! The secret of the service tokens is changed while requests are made: the steps of SECURITY.md, one process after the other.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::harness::{PrivateStack, Stack, conversation, text, until};

const SECRET: &str = "ASSAY_SECURITY__SERVICE_TOKEN_SECRET";
const ACCEPTED: &str = "ASSAY_SECURITY__SERVICE_TOKEN_ACCEPTED_SECRET";

/// What callers log of a refused token.
const REFUSALS: [&str; 2] = ["answered 401", "token was rejected"];

/// No call is refused after any restart of the documented steps; without the steps calls are refused.
pub async fn run(stack: &mut PrivateStack) -> Result<()> {
    stack.start().await?;
    let old = stack.setting(SECRET).to_owned();
    let new = "the-next-secret-of-the-services-of-this-stack";
    let names = stack.process_names().to_vec();
    for (step, (signing, accepted)) in [(old.as_str(), new), (new, &old), (new, "")].into_iter().enumerate() {
        for name in &names {
            stack.restart_with(name, &[(SECRET, signing), (ACCEPTED, accepted)]).await?;
            let state = format!("{name} restarted in step {}", step + 1);
            check_calls(stack, &state).await.with_context(|| state.clone())?;
            let refusals = refusals(stack)?;
            ensure!(refusals.is_empty(), "{state}: {refusals:?}");
        }
    }
    stack.restart_with("gateway", &[(SECRET, &old)]).await?;
    stack.api()?.get("/v1/evaluations/exports").await?.problem(503, "unavailable")?;
    ensure!(!refusals(stack)?.is_empty(), "a refused token is not logged, so the checks above prove nothing");
    Ok(())
}

/// Checks every call between services: for keys, agents, transcripts, evaluations, exports and subscribers.
async fn check_calls(stack: &Stack, name: &str) -> Result<()> {
    let api = stack.api()?;
    // The circuits of a restarted service close within a second.
    let id = until("an import", async || {
        let reply = api.post("/v1/assess", &conversation(name)).await?;
        Ok(if reply.status == 202 { Some(text(&reply.expect(202)?, "id")?) } else { None })
    });
    api.evaluation(&id.await?).await?;
    let agent = json!({"external_id": name, "name": "Bot"});
    until("an agent", async || {
        Ok(matches!(api.post("/v1/agents", &agent).await?.status, 201 | 409).then_some(()))
    })
    .await?;
    until("webhooks", async || Ok((api.get("/v1/webhooks").await?.status == 200).then_some(()))).await?;
    let export = until("an export", async || {
        let reply = api.post("/v1/evaluations/exports", &json!({"kind": "axis"})).await?;
        Ok(if reply.status == 201 { Some(text(&reply.expect(201)?, "id")?) } else { None })
    });
    api.await_complete(&export.await?).await.map(drop)
}

/// Lines of the logs about refused tokens.
fn refusals(stack: &Stack) -> Result<Vec<String>> {
    let logs = stack.logs()?;
    let refused = logs.lines().filter(|line| REFUSALS.iter().any(|refusal| line.contains(refusal)));
    Ok(refused.map(str::to_owned).collect())
}
