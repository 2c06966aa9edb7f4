//! Unknown routes, methods and oversized heads are problems. Also health and OpenAPI.

use anyhow::{Result, ensure};
use reqwest::Method;
use serde_json::Value;

use crate::harness::{Api, Cases, RawConnection, Stack, text};

/// Unknown routes, wrong methods, over-long heads; health and OpenAPI.
pub async fn run(stack: &Stack) -> Result<()> {
    let api = stack.api()?;
    let mut cases = Cases::default();
    cases.check("unknown routes", unknown_routes(&api).await);
    cases.check("wrong methods", wrong_methods(&api).await);
    cases.check("long heads", long_heads(stack).await);
    cases.check("health", health(&stack.api_with(None)?).await);
    cases.check("OpenAPI", openapi(stack).await);
    cases.finish()
}

async fn unknown_routes(api: &Api) -> Result<()> {
    let paths = "/ /v1 /v1/ /v1/assess/ /v2/assess /v1/Assess /v1/agents/1 /v1/tickets /internal/v1/exports";
    let mut cases = Cases::default();
    for path in paths.split(' ') {
        for method in [Method::GET, Method::POST, Method::DELETE] {
            let reply = api.reply(api.request(method.clone(), path)).await?;
            cases.check(format!("{method} {path}"), reply.problem(404, "route-not-found").map(drop));
        }
    }
    cases.finish()
}

async fn wrong_methods(api: &Api) -> Result<()> {
    let id = "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11";
    let table = [
        ("/v1/assess".to_owned(), vec!["POST"]),
        ("/v1/agents".to_owned(), vec!["POST"]),
        ("/v1/evaluations/exports".to_owned(), vec!["GET", "HEAD", "POST"]),
        (format!("/v1/evaluations/exports/{id}"), vec!["GET", "HEAD"]),
        (format!("/v1/evaluations/exports/{id}/download"), vec!["GET", "HEAD"]),
        (format!("/v1/tickets/{id}"), vec!["GET", "HEAD", "DELETE"]),
        (format!("/v1/tickets/{id}/evaluation"), vec!["GET", "HEAD"]),
        (format!("/v1/downloads/{id}"), vec!["GET", "HEAD"]),
        ("/openapi.json".to_owned(), vec!["GET", "HEAD"]),
        ("/healthz".to_owned(), vec!["GET", "HEAD"]),
        ("/readyz".to_owned(), vec!["GET", "HEAD"]),
    ];
    let mut cases = Cases::default();
    for (path, allowed) in table {
        for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            if allowed.contains(&method.as_str()) {
                continue;
            }
            let reply = api.reply(api.request(method.clone(), &path)).await?;
            let outcome = reply.problem(405, "method-not-allowed").and_then(|_| {
                let found: Vec<&str> = reply.header("allow").split(", ").collect();
                ensure!(found == allowed, "Allow: {found:?}");
                Ok(())
            });
            cases.check(format!("{method} {path}"), outcome);
        }
    }
    cases.finish()
}

async fn long_heads(stack: &Stack) -> Result<()> {
    let mut cases = Cases::default();
    for (name, path, more_path, header, status, code) in [
        ("a header of 40 kB", "/healthz", 0, 40_000, 431, "headers-too-large"),
        ("a header of 100 kB", "/v1/assess", 0, 100_000, 431, "headers-too-large"),
        ("an address of 10 kB", "/v1/tickets/", 10_000, 0, 414, "uri-too-long"),
        ("a query of 30 kB", "/v1/evaluations/exports?cursor=", 30_000, 0, 414, "uri-too-long"),
    ] {
        let mut connection = RawConnection::open(stack.base_url()).await?;
        let (more_path, header) = ("x".repeat(more_path), "x".repeat(header));
        let request =
            format!("GET {path}{more_path} HTTP/1.1\r\nHost: localhost\r\nX-Long: {header}\r\n\r\n");
        connection.send(request.as_bytes()).await?;
        cases.check(name, connection.reply().await.and_then(|reply| reply.problem(status, code).map(drop)));
    }
    cases.finish()
}

async fn health(api: &Api) -> Result<()> {
    let alive = api.get("/healthz").await?.expect(200)?;
    ensure!(alive["status"] == "alive", "{alive}");
    let ready = api.get("/readyz").await?.expect(200)?;
    ensure!(ready["status"] == "ready", "{ready}");
    Ok(())
}

/// The document is the one the executable prints. Whether it has every operation: `isolation`.
async fn openapi(stack: &Stack) -> Result<()> {
    let served = stack.api_with(None)?.get("/openapi.json").await?.expect(200)?;
    let printed = stack.assay(&["openapi"]).output().await?;
    let printed: Value = serde_json::from_slice(&printed.stdout)?;
    ensure!(served == printed, "the printed document differs from the served one");
    let version = text(&served, "openapi")?;
    ensure!(version.starts_with("3.1."), "{version}");
    Ok(())
}
