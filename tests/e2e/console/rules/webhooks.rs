//! Webhooks are managed without scripts.

use anyhow::{Context, Result, ensure};

use crate::browser::{Browser, Viewer};
use crate::console::visit::Visit;
use crate::harness::until;

/// Nothing listens there: every attempt fails at once.
const TARGET: &str = "http://127.0.0.1:1024/hook";

/// On the page of a message: its payload, and the rows of its attempts.
const PAYLOAD: &str = "#h-p ~ pre";
const ATTEMPTS: &str = "#h-a ~ .scroll tbody tr";
/// The link to the page of a webhook, or of a message, in its row of a table.
const LINK: &str = "a.q";

/// A webhook is made, changed, turned off and on; it gets another secret; a test message is sent twice; it is deleted.
pub async fn run(visit: &mut Visit) -> Result<()> {
    visit.reset(&Viewer { scripts: false, ..Viewer::default() }).await?;
    let browser = &mut visit.browser;
    let secret = create(browser).await.context("create")?;
    let page = browser.address().await?;
    change(browser).await.context("change")?;
    turn_off_and_on(browser).await.context("turn off and on")?;
    rotate(browser, &page, &secret).await.context("another secret")?;
    send_and_replay(browser, &page).await.context("test message")?;
    browser.open(&page).await?;
    browser.click("details.block summary").await?;
    browser.follow("#delete button").await?;
    visit.api.get(&page.replace("/console", "/v1")).await?.expect_status(404)
}

/// Creates a webhook for all events but one, and opens it; returns its secret, which is shown once.
async fn create(browser: &mut Browser) -> Result<String> {
    browser.open("/console").await?;
    browser.follow("nav a[href='/console/webhooks']").await?;
    browser.fill("#url", TARGET).await?;
    browser.click("#new [name=events][value='resolution.disputed']").await?;
    browser.follow("#new button[type=submit]").await?;
    let secret = browser.text("#new-secret").await?;
    ensure!(secret.starts_with("whsec_"), "no secret");
    browser.follow(&format!("tbody tr:first-child {LINK}")).await?;
    browser.expect_text("h1", TARGET).await?;
    browser.expect_absent(&secret).await?;
    Ok(secret)
}

/// Changes the description; everything else stays.
async fn change(browser: &mut Browser) -> Result<()> {
    browser.fill("#settings [name=description]", "Data team").await?;
    browser.follow("#settings button[type=submit]").await?;
    browser.expect_text("#done", "The webhook is changed.").await?;
    let values: Vec<String> =
        browser.all("#settings [name=url], #settings [name=description]", "it.value").await?;
    ensure!(values == [TARGET, "Data team"], "{values:?}");
    let left_out: Vec<String> = browser.all("#settings [name=events]:not(:checked)", "it.value").await?;
    ensure!(left_out == ["resolution.disputed"], "without the events {left_out:?}");
    browser.follow(".crumb a").await?;
    browser.expect_text("tbody tr:first-child .why", "Data team").await?;
    browser.follow(&format!("tbody tr:first-child {LINK}")).await
}

async fn turn_off_and_on(browser: &mut Browser) -> Result<()> {
    for (button, state) in [("disable", "off"), ("enable", "on")] {
        browser.follow(&format!("#actions [value={button}]")).await?;
        browser.expect_text("#done", "The webhook is changed.").await?;
        browser.expect_text("h1 + .sub", state).await?;
    }
    Ok(())
}

/// Another secret is made, and shown once.
async fn rotate(browser: &mut Browser, page: &str, first: &str) -> Result<()> {
    browser.follow("#actions [value=rotate]").await?;
    let secret = browser.text("#new-secret").await?;
    ensure!(secret.starts_with("whsec_") && secret != first, "no other secret");
    browser.expect_absent(first).await?;
    browser.open(page).await?;
    browser.expect_absent(&secret).await
}

/// A test message is sent, and opened; after its first attempt it is sent again, as the same message.
async fn send_and_replay(browser: &mut Browser, page: &str) -> Result<()> {
    browser.follow("#actions [value=test]").await?;
    browser.expect_text("#done", "A test message is queued; it appears below.").await?;
    browser.follow(&format!("tr[id^=delivery-] {LINK}")).await?;
    let delivery = browser.address().await?;
    let id = delivery.strip_prefix(&format!("{page}/deliveries/")).context(delivery.clone())?;
    ensure!(browser.has(PAYLOAD).await?, "no payload");
    until("an attempt at the message", async || {
        browser.reload().await?;
        Ok(browser.has(ATTEMPTS).await?.then_some(()))
    })
    .await?;
    let outcome = browser.text(&format!("{ATTEMPTS} td:last-child")).await?;
    ensure!(!outcome.is_empty(), "nothing is said of the attempt");
    browser.follow("main form.actions button").await?;
    browser.expect_text("#done", "The message is queued again.").await?;
    ensure!(browser.has(&format!("#delivery-{id}")).await?, "the list has no message {id}");
    Ok(())
}
