//! Exports: created, read, listed and refused. Every rule of bodies and pages: `crates/export/tests/export`, to which the gateway
//! forwards them.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::harness::{Api, Cases, Stack, expect_members, text};

const EXPORTS: &str = "/v1/evaluations/exports";
/// The latest moment of the API: 9999-12-31T23:59:59.999Z.
const LATEST: i64 = 253_402_300_799_999;

/// Creation, reading, refusals.
pub async fn run(stack: &Stack) -> Result<()> {
    let mut cases = Cases::default();
    cases.check("created", created(&stack.api()?).await);
    cases.check("filters", filters(&stack.api()?).await);
    cases.check("a refused body", refused(&stack.api()?).await);
    cases.check("unknown ids", unknown_ids(&stack.api()?).await);
    cases.check("refused page parameters", page_parameters(&stack.api()?).await);
    cases.finish()
}

async fn created(api: &Api) -> Result<()> {
    for kind in ["axis", "resolution_audit"] {
        let reply = api.post(EXPORTS, &json!({"kind": kind})).await?;
        let export = reply.expect(201)?;
        let id = text(&export, "id")?;
        let created_at = export["created_at"].as_i64().context("created_at")?;
        let expected = json!({"id": id, "kind": kind, "format": "csv", "status": "pending", "filters": {},
            "created_at": created_at, "updated_at": created_at});
        ensure!(export == expected, "{export}");
        let location = reply.header("location");
        ensure!(location == format!("{EXPORTS}/{id}"), "Location: {location:?}");
        let complete = api.await_complete(&id).await?;
        ensure!(complete["created_at"] == created_at, "created_at moved: {complete}");
        ensure!(complete["updated_at"].as_i64() >= Some(created_at), "updated_at: {complete}");
        expect_members(
            &complete,
            "id kind format status filters created_at updated_at download_url file_status file_expires_at \
             evaluations_complete missing_evaluations",
        )?;
    }
    Ok(())
}

/// Echoed as sent, in later reads too.
async fn filters(api: &Api) -> Result<()> {
    let filters = json!({"from": 0, "to": LATEST});
    let body = json!({"kind": "axis", "format": "csv", "filters": filters});
    let export = api.post(EXPORTS, &body).await?.expect(201)?;
    ensure!(export["filters"] == filters, "{export}");
    let read = api.get(&format!("{EXPORTS}/{}", text(&export, "id")?)).await?.expect(200)?;
    ensure!(read["filters"] == filters, "{read}");
    Ok(())
}

async fn refused(api: &Api) -> Result<()> {
    let body = json!({"kind": "axis", "filters": {"from": 2, "to": 1}});
    api.post(EXPORTS, &body).await?.error_at("/filters/from").map(drop)
}

async fn unknown_ids(api: &Api) -> Result<()> {
    for id in ["0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11", "1", "x", "%00", "%FF"] {
        api.get(&format!("{EXPORTS}/{id}")).await?.problem(404, "export-not-found")?;
        api.get(&format!("{EXPORTS}/{id}/download")).await?.problem(404, "export-not-found")?;
    }
    Ok(())
}

/// The query is forwarded as it was sent.
async fn page_parameters(api: &Api) -> Result<()> {
    api.get(&format!("{EXPORTS}?limit=%2B5")).await?.error_at("limit")?;
    api.get(&format!("{EXPORTS}?cursor=%00")).await?.problem(400, "invalid-cursor").map(drop)
}
