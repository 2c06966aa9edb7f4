//! API keys and scopes, checked before a body is read.

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Api, Cases, RawConnection, Reply, Stack, conversation, until};

const UNKNOWN_ID: &str = "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11";

/// Documented operations, each with the scope that it needs.
fn operations() -> Vec<(Method, String, &'static str)> {
    vec![
        (Method::POST, "/v1/assess".to_owned(), "assess"),
        (Method::POST, "/v1/agents".to_owned(), "agents"),
        (Method::POST, "/v1/evaluations/exports".to_owned(), "exports"),
        (Method::GET, "/v1/webhooks".to_owned(), "webhooks"),
        (Method::GET, "/v1/evaluations/exports".to_owned(), "exports"),
        (Method::GET, format!("/v1/evaluations/exports/{UNKNOWN_ID}"), "exports"),
        (Method::GET, format!("/v1/evaluations/exports/{UNKNOWN_ID}/download"), "exports"),
        (Method::GET, format!("/v1/tickets/{UNKNOWN_ID}"), "tickets"),
        (Method::GET, format!("/v1/tickets/{UNKNOWN_ID}/evaluation"), "tickets"),
    ]
}

/// Invalid keys in all forms, and keys without the required scope.
pub async fn run(stack: &Stack) -> Result<()> {
    let mut cases = Cases::default();
    cases.check("invalid keys", invalid_keys(stack).await);
    cases.check("a large body with an invalid key", large_body(stack).await);
    cases.check("a ticket without a valid key", hidden_tickets(stack).await);
    cases.check("the scheme's case", scheme(stack).await);
    cases.check("scopes", scopes(stack).await);
    cases.check("a revoked key", revocation(stack).await);
    cases.check("keys on the command line", listing(stack).await);
    cases.check("request ids", request_ids(&stack.api()?).await);
    cases.finish()
}

async fn invalid_keys(stack: &Stack) -> Result<()> {
    let good = stack.create_key(&stack.other("new"), &[]).await?;
    let altered = format!("{}{}", &good[..good.len() - 1], if good.ends_with('a') { "b" } else { "a" });
    let headers = [
        None,
        Some(String::new()),
        Some("Bearer".to_owned()),
        Some("Bearer ".to_owned()),
        Some(good.clone()),
        Some(format!("Basic {good}")),
        Some(format!("Token {good}")),
        Some(format!("Bearer {good} {good}")),
        Some(format!("Bearer {good}x")),
        Some(format!("Bearer {}", good.to_lowercase())),
        Some(format!("Bearer {altered}")),
        Some("Bearer asy_short".to_owned()),
        Some(format!("Bearer {}", "x".repeat(4_000))),
    ];
    let api = stack.api_with(None)?;
    let mut cases = Cases::default();
    for header in headers {
        for (method, path, _) in operations() {
            let name = format!("{method} {path} with {header:?}");
            cases.check(name, is_unauthorized(&api, method, &path, header.as_deref()).await);
        }
    }
    cases.finish()
}

async fn is_unauthorized(api: &Api, method: Method, path: &str, header: Option<&str>) -> Result<()> {
    // Invalid body and media type: the key is checked first.
    let mut request = api.request(method.clone(), path);
    if method == Method::POST {
        request = request.header("content-type", "text/plain").body("{");
    }
    if let Some(header) = header {
        request = request.header("authorization", header);
    }
    let reply = api.reply(request).await?;
    if path == format!("/v1/tickets/{UNKNOWN_ID}") {
        return reply.problem(404, "ticket-not-found").map(drop);
    }
    reply.problem(401, "unauthorized")?;
    ensure!(
        reply.header("www-authenticate") == "Bearer",
        "WWW-Authenticate: {:?}",
        reply.header("www-authenticate")
    );
    Ok(())
}

/// Refused after the head of the request, without waiting for the body.
async fn large_body(stack: &Stack) -> Result<()> {
    let mut connection = RawConnection::open(stack.base_url()).await?;
    let head = "POST /v1/assess HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Content-Length: 64000000\r\n\r\n";
    connection.send(head.as_bytes()).await?;
    connection.reply().await?.problem(401, "unauthorized").map(drop)
}

/// `GET /v1/tickets/{id}` documents no 401: without a valid key the response is that of an unknown ticket, byte for byte.
async fn hidden_tickets(stack: &Stack) -> Result<()> {
    let id = stack.api()?.import(&conversation("hidden")).await?;
    let unknown = stack.api()?.get(&format!("/v1/tickets/{UNKNOWN_ID}")).await?;
    let expected = without_request_id(&unknown)?;
    for key in [None, Some("no-such-key-but-long-enough-to-ask")] {
        let reply = stack.api_with(key)?.get(&format!("/v1/tickets/{id}")).await?;
        ensure!(without_request_id(&reply)? == expected, "{key:?}: {} and {}", reply.text(), unknown.text());
        let names = |reply: &Reply| {
            let mut names: Vec<String> = reply.headers.keys().map(ToString::to_string).collect();
            names.sort();
            names
        };
        ensure!(names(&reply) == names(&unknown), "{key:?}: {:?} and {:?}", reply.headers, unknown.headers);
    }
    Ok(())
}

fn without_request_id(reply: &Reply) -> Result<Value> {
    let mut problem = reply.problem(404, "ticket-not-found")?;
    problem.as_object_mut().and_then(|problem| problem.remove("request_id")).context("no request id")?;
    Ok(problem)
}

async fn scheme(stack: &Stack) -> Result<()> {
    let api = stack.api_with(None)?;
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
        let request = api.request(Method::GET, "/v1/evaluations/exports");
        let request = request.header("authorization", format!("{scheme} {}", stack.key()));
        api.reply(request).await?.expect(200).context(scheme)?;
    }
    Ok(())
}

async fn scopes(stack: &Stack) -> Result<()> {
    let mut cases = Cases::default();
    for scope in ["assess", "agents", "tickets", "exports", "webhooks", "admin"] {
        let key = stack.create_key(&stack.other("scopes"), &["--scopes", scope]).await?;
        let api = stack.api_with(Some(&key))?;
        for (method, path, needed) in operations() {
            let request = api.request(method.clone(), &path);
            let request = if method == Method::POST { request.json(&json!({})) } else { request };
            let reply = api.reply(request).await?;
            let outcome = match (needed == scope, method) {
                (false, _) => reply.problem(403, "missing-scope").map(drop),
                (true, Method::POST) => reply.problem(400, "invalid-request").map(drop),
                (true, _) if path.ends_with("exports") || path.ends_with("webhooks") => {
                    reply.expect(200).map(drop)
                }
                (true, _) => reply.expect(404).map(drop),
            };
            cases.check(format!("{path} with the scope {scope}"), outcome);
        }
    }
    cases.finish()
}

async fn revocation(stack: &Stack) -> Result<()> {
    let api = stack.api_of("revoked").await?;
    api.get("/v1/evaluations/exports").await?.expect(200)?;
    let listing = ["list", "--organization", &stack.other("revoked")];
    let list = stack.keys(&listing).await?;
    let id =
        list.lines().nth(1).and_then(|line| line.split_whitespace().next()).context("no key in the list")?;
    stack.keys(&["revoke", id]).await?;
    let refused = until("the end of a revoked key", async || {
        let reply = api.get("/v1/evaluations/exports").await?;
        Ok((reply.status != 200).then_some(reply))
    });
    refused.await?.problem(401, "unauthorized")?;
    let list = stack.keys(&listing).await?;
    ensure!(list.contains("revoked"), "{list}");
    Ok(())
}

async fn listing(stack: &Stack) -> Result<()> {
    let organization = stack.other("listed");
    let key = stack.create_key(&organization, &["--name", "for a test"]).await?;
    ensure!(key.starts_with("asy_") && !key.contains(char::is_whitespace), "printed: {key:?}");
    let json = stack.keys(&["list", "--organization", &organization, "--json"]).await?;
    let json: serde_json::Value = serde_json::from_str(&json)?;
    let first = json.get(0).with_context(|| json.to_string())?;
    ensure!(first["organization"] == organization.as_str() && first["state"] == "active", "{json}");
    ensure!(first["created_at"].is_i64() && first["scopes"].is_array() && first["id"].is_string(), "{json}");
    let list = stack.keys(&["list", "--organization", &organization]).await?;
    ensure!(list.lines().count() == 2 && list.contains("for a test"), "{list}");
    ensure!(!list.contains(&key[4..20]), "the list shows a part of the key");
    Ok(())
}

/// A valid `X-Request-Id` is echoed, else a new one is generated.
async fn request_ids(api: &Api) -> Result<()> {
    let longest = "x".repeat(128);
    for (sent, echoed) in [
        ("abc-123", true),
        (longest.as_str(), true),
        (&format!("{longest}x"), false),
        ("two words", false),
        ("", false),
    ] {
        for path in ["/v1/evaluations/exports", "/v1/tickets/none", "/nowhere", "/healthz"] {
            let reply = api.reply(api.request(Method::GET, path).header("x-request-id", sent)).await?;
            let found = reply.header("x-request-id");
            ensure!(!found.is_empty() && (found == sent) == echoed, "{path}: {sent:?} became {found:?}");
            if reply.status >= 400 {
                ensure!(reply.expect(404)?["request_id"] == found, "{path}: {}", reply.text());
            }
        }
    }
    Ok(())
}
