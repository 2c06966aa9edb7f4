//! Headers of every response.

use anyhow::Result;
use reqwest::Method;

use crate::test_app::{TestApp, page};

const PATHS: [&str; 14] = [
    "/console",
    "/console/conversations",
    "/console/conversations/0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11",
    "/console/exports",
    "/console/webhooks",
    "/console/keys",
    "/console/agents",
    "/console/imports",
    "/console/help",
    "/console/sign-in",
    "/console/sign-in?token=bad",
    "/console/nothing",
    "/console/theme?to=dark",
    "/console/assets/nothing.css",
];

#[tokio::test]
async fn every_response_has_the_content_security_policy() -> Result<()> {
    let app = TestApp::start().await?;
    let session = app.sign_in().await?;
    for cookie in ["", session.as_str()] {
        for path in PATHS {
            let response = app.request(Method::GET, path)?.header("cookie", cookie).send().await?;
            let header = |name: &str| {
                response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
            };
            assert_eq!(
                header("content-security-policy"),
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                 form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
                "{path}"
            );
            assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
            assert!(header("cache-control").contains("no-store") || response.status() == 404, "{path}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn pages_have_nothing_inline() -> Result<()> {
    let app = TestApp::start().await?;
    let session = app.sign_in().await?;
    for path in ["/console/keys", "/console/agents", "/console/sign-in", "/console/help", "/console/nothing"]
    {
        let text = app.get(&session, path).await?.text;
        for forbidden in
            [" style=", "<style", " onclick", " onload", "hx-on", "javascript:", "http://", "https://www"]
        {
            assert!(!text.contains(forbidden), "{path} has {forbidden}");
        }
        assert!(!text.contains("<script>"), "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn assets_are_kept_for_ever_under_their_hashes() -> Result<()> {
    let app = TestApp::start().await?;
    let text = page(app.request(Method::GET, "/console/sign-in")?.send().await?).await?.text;
    let style =
        text.split("href=\"").find(|part| part.starts_with("/console/assets/console.")).unwrap_or_default();
    let style = style.split('"').next().unwrap_or_default();
    let response = app.request(Method::GET, style)?.header("accept-encoding", "gzip").send().await?;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["cache-control"], "public, max-age=31536000, immutable");
    assert_eq!(response.headers()["content-encoding"], "gzip");
    assert_eq!(response.headers()["content-type"], "text/css; charset=utf-8");
    Ok(())
}

#[tokio::test]
async fn console_needs_the_token_of_the_gateway() -> Result<()> {
    let app = TestApp::start().await?;
    for path in ["/console/keys", "/console/sign-in"] {
        assert_eq!(app.unauthenticated(path).send().await?.status(), 401, "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn part_of_a_page_is_told_where_to_sign_in() -> Result<()> {
    let app = TestApp::start().await?;
    let response =
        app.request(Method::GET, "/console/conversations")?.header("hx-request", "true").send().await?;
    assert_eq!(response.status(), 401);
    assert_eq!(response.headers()["hx-redirect"], "/console/sign-in?back=%2Fconsole%2Fconversations");
    Ok(())
}
