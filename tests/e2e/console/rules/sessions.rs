//! The sessions of colleagues are listed, and can be ended.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::browser::{Browser, Viewer};
use crate::console::visit::Visit;

/// The name of the colleague's key, by which the list shows whose session it is.
const KEY_NAME: &str = "key-of-a-colleague";

/// Without scripts: a colleague signs in by a key, the list shows that session, and after its end its cookie opens nothing.
pub async fn run(visit: &mut Visit) -> Result<()> {
    let viewer = Viewer { scripts: false, ..Viewer::default() };
    let cookies = sign_in_colleague(visit, &viewer).await.context("the colleague does not sign in")?;

    visit.reset(&viewer).await?;
    let browser = &mut visit.browser;
    browser.open("/console/keys").await?;
    let listed = sessions_of_colleague(browser).await?;
    let [form] = &listed[..] else { bail!("the colleague has the sessions {listed:?}") };
    browser.follow(&format!("form[action='{form}'] button")).await?;
    browser.expect_text("#done", "The session has ended.").await?;
    let listed = sessions_of_colleague(browser).await?;
    ensure!(listed.is_empty(), "still listed: {listed:?}");

    browser.reset(&viewer).await?;
    browser.set_cookies(&cookies).await?;
    browser.open("/console/keys").await?;
    browser.expect_address("/console/sign-in?back=%2Fconsole%2Fkeys").await
}

/// Without scripts: a form with more text than a cookie holds is sent after the end of its session, and is there again after
/// signing in.
pub async fn long_form(visit: &mut Visit) -> Result<()> {
    visit.reset(&Viewer { scripts: false, ..Viewer::default() }).await?;
    let browser = &mut visit.browser;
    let cookies = browser.cookies().await?;
    let typed = ["long-name-bot".to_owned(), "\u{540d}".repeat(1_000)];
    browser.open("/console/agents").await?;
    for (field, text) in ["#external_id", "#name"].into_iter().zip(&typed) {
        browser.click(field).await?;
        browser.type_text(text).await?;
    }
    browser.set_cookies(&unknown(&cookies)).await?;
    browser.follow("#new button[type=submit]").await?;
    let title = browser.text("h1").await?;
    ensure!(title == "Sign in again", "{title}");
    // As after signing in in another tab.
    browser.set_cookies(&cookies).await?;
    browser.follow("#typed button").await?;
    let values: Vec<String> = browser.all("#external_id, #name", "it.value").await?;
    ensure!(values == typed, "{values:?}");
    ensure!(browser.has("#refilled").await?, "nothing says that the form was filled in before");
    browser.expect_only_page_errors("status of 403").await
}

/// The cookies with a session that does not exist.
fn unknown(cookies: &Value) -> Value {
    let mut cookies = cookies.clone();
    for cookie in cookies.as_array_mut().into_iter().flatten() {
        if cookie["name"] == "assay-session" {
            let token: String = cookie["value"].as_str().unwrap_or_default().chars().rev().collect();
            cookie["value"] = token.into();
        }
    }
    cookies
}

/// Signs in by a new key in another browser; returns its cookies.
async fn sign_in_colleague(visit: &mut Visit, viewer: &Viewer) -> Result<Value> {
    let settings = ["--scopes", "console", "--name", KEY_NAME];
    let key = visit.stack.create_key(visit.stack.organization(), &settings).await?;
    let browser = &mut visit.browser;
    browser.reset(viewer).await?;
    browser.open("/console/sign-in").await?;
    browser.fill("#key", &key).await?;
    browser.follow("#sign-in button").await?;
    browser.expect_address("/console").await?;
    browser.cookies().await
}

/// The addresses of the forms that end the colleague's sessions.
async fn sessions_of_colleague(browser: &mut Browser) -> Result<Vec<String>> {
    let form = format!(
        "it.cells[1].textContent === 'the key {KEY_NAME}' ? it.querySelector('form').getAttribute('action') : ''"
    );
    let forms: Vec<String> = browser.all("#h-sessions ~ table tbody tr", &form).await?;
    ensure!(!forms.is_empty(), "the page lists no session");
    Ok(forms.into_iter().filter(|form| !form.is_empty()).collect())
}
