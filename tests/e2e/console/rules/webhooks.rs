//! Webhooks are managed without scripts.

use anyhow::{Context, Result, ensure};

use crate::browser::Viewer;
use crate::console::visit::Visit;
use crate::harness::until;

/// Nothing listens there: every attempt fails at once.
const TARGET: &str = "http://127.0.0.1:1024/hook";

/// A webhook is made, changed, turned off and on; it gets another secret; a test message is sent, and sent again.
pub async fn run(visit: &mut Visit) -> Result<()> {
    visit.reset(&Viewer { scripts: false, ..Viewer::default() }).await?;
    let secret = create(visit).await.context("create")?;
    let page = visit.browser.address().await?;
    change(visit).await.context("change")?;
    turn_off_and_on(visit).await.context("turn off and on")?;
    rotate(visit, &page, &secret).await.context("another secret")?;
    send_and_replay(visit, &page).await.context("test message")?;
    // Deleted, so that later rules have no webhook that gets all events. The form for it is checked by `walks::without_scripts`.
    visit.api.delete(&page.replace("/console", "/v1")).await?.expect_status(204)
}

/// Creates a webhook for all events, and opens it; returns its secret, which is shown once.
async fn create(visit: &mut Visit) -> Result<String> {
    let browser = &mut visit.browser;
    browser.open("/console").await?;
    browser.follow("nav a[href='/console/webhooks']").await?;
    browser.click("#url").await?;
    browser.type_text(TARGET).await?;
    browser.follow("#new button[type=submit]").await?;
    let secret = browser.text("#new-secret").await?;
    ensure!(secret.starts_with("whsec_"), "no secret");
    browser.follow("tbody tr:first-child a.q").await?;
    let title = browser.text("h1").await?;
    ensure!(title == TARGET, "{title}");
    expect_not_shown(visit, &secret).await?;
    Ok(secret)
}

/// Changes the description; everything else stays.
async fn change(visit: &mut Visit) -> Result<()> {
    let browser = &mut visit.browser;
    browser.click("#settings [name=description]").await?;
    browser.type_text("Data team").await?;
    browser.follow("#settings button[type=submit]").await?;
    expect_notice(visit, "The webhook is changed.").await?;
    let browser = &mut visit.browser;
    let values: Vec<String> =
        browser.all("#settings [name=url], #settings [name=description]", "it.value").await?;
    ensure!(values == [TARGET, "Data team"], "{values:?}");
    let events: Vec<bool> = browser.all("#settings [name=events]", "it.checked").await?;
    ensure!(events.len() > 1 && !events.contains(&false), "events are lost: {events:?}");
    browser.follow(".crumb a").await?;
    let description = browser.text("tbody tr:first-child .why").await?;
    ensure!(description == "Data team", "the list has {description}");
    browser.follow("tbody tr:first-child a.q").await
}

async fn turn_off_and_on(visit: &mut Visit) -> Result<()> {
    for (button, state) in [("disable", "off"), ("enable", "on")] {
        visit.browser.follow(&format!("#actions [value={button}]")).await?;
        expect_notice(visit, "The webhook is changed.").await?;
        let shown = visit.browser.text("h1 + .sub").await?;
        ensure!(shown == state, "after {button} the webhook is {shown}");
    }
    Ok(())
}

/// Another secret is made, and shown once.
async fn rotate(visit: &mut Visit, page: &str, first: &str) -> Result<()> {
    let browser = &mut visit.browser;
    browser.follow("#actions [value=rotate]").await?;
    let secret = browser.text("#new-secret").await?;
    ensure!(secret.starts_with("whsec_") && secret != first, "no other secret");
    expect_not_shown(visit, first).await?;
    visit.browser.open(page).await?;
    expect_not_shown(visit, &secret).await
}

/// A test message is sent, and opened; after its first attempt it is sent again, as the same message.
async fn send_and_replay(visit: &mut Visit, page: &str) -> Result<()> {
    visit.browser.follow("#actions [value=test]").await?;
    expect_notice(visit, "A test message is queued; it appears below.").await?;
    let browser = &mut visit.browser;
    browser.follow("tr[id^=delivery-] a.q").await?;
    let delivery = browser.address().await?;
    let id = delivery.strip_prefix(&format!("{page}/deliveries/")).context(delivery.clone())?;
    ensure!(browser.has("#h-p ~ pre").await?, "no payload");
    until("an attempt at the message", async || {
        browser.reload().await?;
        Ok(browser.has("#h-a ~ .scroll tbody tr").await?.then_some(()))
    })
    .await?;
    let outcome = browser.text("#h-a ~ .scroll tbody tr td:last-child").await?;
    ensure!(!outcome.is_empty(), "nothing is said of the attempt");
    browser.follow("main form.actions button").await?;
    expect_notice(visit, "The message is queued again.").await?;
    ensure!(visit.browser.has(&format!("#delivery-{id}")).await?, "the list has no message {id}");
    Ok(())
}

async fn expect_notice(visit: &mut Visit, text: &str) -> Result<()> {
    let said = visit.browser.text("#done").await?;
    ensure!(said == text, "{said}");
    Ok(())
}

/// The page does not have the secret.
async fn expect_not_shown(visit: &mut Visit, secret: &str) -> Result<()> {
    let secret = serde_json::to_string(secret)?;
    let is_shown: bool =
        visit.browser.evaluate(&format!("document.documentElement.outerHTML.includes({secret})")).await?;
    ensure!(!is_shown, "a secret is shown again");
    Ok(())
}
