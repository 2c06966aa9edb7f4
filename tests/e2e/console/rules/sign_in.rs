//! Signing in and out.

use anyhow::{Result, ensure};

use crate::browser::{Browser, Viewer};
use crate::console::visit::Visit;

/// The address of `assay console link` works once; signing out ends the session, also for a copy of its cookie; a page that
/// needs a session leads to the form, and from there back.
pub async fn run(visit: &mut Visit) -> Result<()> {
    let link = visit.sign_in_link().await?;
    let browser = &mut visit.browser;
    browser.reset(&Viewer::default()).await?;
    browser.open(&link).await?;
    ensure!(browser.text("h1").await? != "Sign in", "the address does not sign in");
    let session = browser.cookies().await?;

    browser.reset(&Viewer::default()).await?;
    browser.open(&link).await?;
    ensure!(browser.has("#link-fault").await?, "the address signs in twice");
    expect_refusal(browser).await?;

    browser.set_cookies(&session).await?;
    browser.open("/console/agents").await?;
    browser.follow("form.who button").await?;
    browser.set_cookies(&session).await?;
    browser.open("/console/keys").await?;
    browser.expect_address("/console/sign-in?back=%2Fconsole%2Fkeys").await?;

    let key = visit.stack.create_key(visit.stack.organization(), &["--scopes", "console"]).await?;
    browser.fill("#key", "asy_wrong").await?;
    browser.press_and_follow("Enter").await?;
    ensure!(browser.text("#key-fault").await?.contains("does not know this key"), "no reason");
    expect_refusal(browser).await?;
    browser.fill("#key", &key).await?;
    browser.press_and_follow("Enter").await?;
    browser.expect_address("/console/keys").await?;
    check_update_after_sign_out(browser).await
}

/// A partial update after the end of the session leads to the sign-in form, too, through the gateway.
async fn check_update_after_sign_out(browser: &mut Browser) -> Result<()> {
    browser.open("/console/conversations").await?;
    let status: u16 = browser
        .evaluate("fetch('/console/sign-out', {method: 'POST', body: new URLSearchParams(new FormData(document.querySelector('form.who')))}).then((it) => it.status)")
        .await?;
    ensure!(status == 200, "signing out answered {status}");
    browser.click("#sort-axis").await?;
    browser
        .wait_for("location.pathname === '/console/sign-in' && document.querySelector('#key') !== null")
        .await?;
    browser.expect_in_address(&["back=%2Fconsole%2Fconversations"]).await?;
    expect_refusal(browser).await
}

/// Checks that the page errors are responses with 403: the browser reports every error response.
async fn expect_refusal(browser: &mut Browser) -> Result<()> {
    let page_errors = browser.take_page_errors().await?;
    let is_expected = |text: &String| text.contains("status of 403");
    ensure!(!page_errors.is_empty() && page_errors.iter().all(is_expected), "{page_errors:?}");
    Ok(())
}
