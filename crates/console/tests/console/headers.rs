//! Headers of every response, and pages of errors.

use anyhow::Result;
use reqwest::Method;

use crate::test_app::{BASE, TestApp, page};

/// Paths, and the status that a signed-in person gets.
const PATHS: [(&str, u16); 17] = [
    ("/console", 200),
    ("/console/conversations", 200),
    ("/console/conversations/0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11", 200),
    ("/console/conversations/0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11/messages/1", 200),
    ("/console/conversations/0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11/messages/abc", 404),
    ("/console/conversations/0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11/evaluation.json", 200),
    ("/console/exports", 200),
    ("/console/webhooks", 200),
    ("/console/keys", 200),
    ("/console/agents", 200),
    ("/console/imports", 200),
    ("/console/help", 200),
    ("/console/sign-in?token=bad", 200),
    ("/console/nothing", 404),
    ("/console/theme?to=dark", 303),
    ("/console/theme", 404),
    ("/console/assets/nothing.css", 404),
];

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

#[tokio::test]
async fn every_response_has_the_content_security_policy() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.answer_all();
    for (path, status) in PATHS {
        for cookie in ["", session.as_str()] {
            let response = app.request(Method::GET, path)?.header("cookie", cookie).send().await?;
            if !cookie.is_empty() {
                assert_eq!(response.status(), status, "{path}");
            }
            expect_headers(path, response.headers());
        }
    }
    let put = app.request(Method::PUT, "/console/keys")?.header("cookie", &session).send().await?;
    assert_eq!((put.status().as_u16(), &put.headers()["allow"]), (405, &"GET, HEAD, POST".parse()?));
    expect_headers("PUT", put.headers());
    let (text, session) = (put.text().await?, session.as_str());
    assert!(text.contains("There is no such page") && text.contains("<nav"), "{text}");
    let form =
        app.request(Method::POST, "/console/keys")?.header("cookie", session).body("no form").send().await?;
    expect_headers("POST", form.headers());
    Ok(())
}

fn expect_headers(path: &str, headers: &reqwest::header::HeaderMap) {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    assert_eq!(header("content-security-policy"), POLICY, "{path}");
    assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
    assert_eq!(header("cache-control"), "no-store", "{path}");
    let content_type = header("content-type");
    assert!(
        !content_type.starts_with("text/plain") && !content_type.contains("problem"),
        "{path}: {content_type}"
    );
}

#[tokio::test]
async fn pages_have_no_inline_scripts_or_styles() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.answer_all();
    let pages = PATHS.into_iter().filter(|(path, status)| *status == 200 && !path.ends_with(".json"));
    for path in pages.map(|(path, _)| path).chain(["/console/sign-in", "/console/nothing"]) {
        // The button that copies the address of a conversation contains an absolute URL.
        let text = app.get(&session, path).await?.text.replace(&format!("data-copy-text=\"{BASE}"), "");
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
async fn partial_update_without_a_session_is_told_where_to_sign_in() -> Result<()> {
    let app = TestApp::start().await?;
    let response =
        app.request(Method::GET, "/console/conversations")?.header("hx-request", "true").send().await?;
    // A 401 would mean that the gateway's own token was refused.
    assert_eq!(response.status(), 403);
    assert_eq!(response.headers()["hx-redirect"], "/console/sign-in?back=%2Fconsole%2Fconversations");
    Ok(())
}

#[tokio::test]
async fn page_of_an_internal_error_has_the_request_id() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.services.answer("/internal/v1/webhooks", 418, serde_json::json!({}));
    let page = app.get(&session, "/console/webhooks").await?;
    assert_eq!(page.status, 500, "{}", page.text);
    let id = page.headers["x-request-id"].to_str()?;
    assert!(page.text.contains(&format!("<code id=\"request-id\">{id}</code>")), "{}", page.text);
    let missing = app.get(&session, "/console/nothing").await?.text;
    assert!(!missing.contains("request-id"), "a missing page is not logged");
    Ok(())
}

#[tokio::test]
async fn not_found_page_has_the_navigation() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    let page = app.get(&session, "/console/nothing").await?;
    assert_eq!(page.status, 404);
    assert!(page.text.contains("href=\"/console/conversations\"") && page.text.contains("Sign out"));
    let signed_out = app.get("", "/console/nothing").await?;
    assert!(signed_out.status == 404 && !signed_out.text.contains("Sign out"));
    Ok(())
}
