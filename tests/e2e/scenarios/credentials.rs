//! API keys: the case of the scheme, revocation, the list on the command line; headers without a valid key, for `isolation`.
//! And request ids.

use anyhow::{Context, Result, ensure};
use assay_agent_registry::SCHEMA;
use assay_agent_registry::keys::{self, CreateKey, KeyName, OrganizationName};
use assay_contracts::tenant::Scopes;
use assay_platform::db::{Database, DatabaseSettings};
use assay_platform::runtime::now;
use reqwest::Method;

use crate::harness::{Api, Cases, Stack, until};

/// Checking, revoking and listing keys; request ids.
pub async fn run(stack: &Stack) -> Result<()> {
    let mut cases = Cases::default();
    cases.check("the scheme's case", scheme(stack).await);
    cases.check("a revoked key", revocation(stack).await);
    cases.check("keys on the command line", listing(stack).await);
    cases.check("request ids", request_ids(&stack.api()?).await);
    cases.finish()
}

/// `Authorization` without a valid key, or none.
pub async fn invalid_headers(stack: &Stack) -> Result<[Option<String>; 15]> {
    let good = stack.create_key(&stack.other_organization("new"), &[]).await?;
    let revoked = stack.create_key(&stack.other_organization("revoked"), &[]).await?;
    revoke_only_key(stack, &stack.other_organization("revoked")).await?;
    let expired = expired_key(stack).await?;
    let altered = format!("{}{}", &good[..good.len() - 1], if good.ends_with('a') { "b" } else { "a" });
    Ok([
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
        Some(format!("Bearer {revoked}")),
        Some(format!("Bearer {expired}")),
    ])
}

async fn revoke_only_key(stack: &Stack, organization: &str) -> Result<()> {
    let list = stack.keys(&["list", "--organization", organization]).await?;
    let id =
        list.lines().nth(1).and_then(|line| line.split_whitespace().next()).context("no key in the list")?;
    stack.keys(&["revoke", id]).await.map(drop)
}

/// An expired key, made in the database: the command line's minimum is one day.
async fn expired_key(stack: &Stack) -> Result<String> {
    let settings =
        DatabaseSettings { database_url: stack.database_url("registry").into(), database_pool_size: 1 };
    let new = CreateKey {
        organization: OrganizationName::parse(&stack.other_organization("expired"))?,
        name: KeyName::parse("short")?,
        scopes: Scopes::default_for_keys(),
        expires_at: Some(now().plus_millis(500)),
    };
    let key = keys::create(&Database::open(&settings, SCHEMA)?, new).await?.key.reveal().to_owned();
    let api = stack.api_with(Some(&key))?;
    until("the end of the key", async || {
        Ok((api.get("/v1/evaluations/exports").await?.status == 401).then_some(()))
    })
    .await?;
    Ok(key)
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

async fn revocation(stack: &Stack) -> Result<()> {
    let api = stack.api_of("former").await?;
    api.get("/v1/evaluations/exports").await?.expect(200)?;
    let organization = stack.other_organization("former");
    revoke_only_key(stack, &organization).await?;
    let refused = until("the end of a revoked key", async || {
        let reply = api.get("/v1/evaluations/exports").await?;
        Ok((reply.status != 200).then_some(reply))
    });
    refused.await?.problem(401, "unauthorized")?;
    let list = stack.keys(&["list", "--organization", &organization]).await?;
    ensure!(list.contains("revoked"), "{list}");
    Ok(())
}

async fn listing(stack: &Stack) -> Result<()> {
    let organization = stack.other_organization("listed");
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
