//! From signing in to the exported file: by keyboard alone, and without scripts.

use anyhow::{Context, Result, bail, ensure};

use crate::browser::{Browser, Viewer};
use crate::console::visit::{IS_FILTERED, Visit};
use crate::harness::{Table, until};

/// Maximum number of Tab presses to reach an element.
const MAX_TABS: usize = 160;

/// By keyboard alone: sign in, overview, a filter, a disputed conversation, its quote, the export of the result, its file.
pub async fn by_keyboard(visit: &mut Visit) -> Result<()> {
    let link = visit.sign_in_link().await?;
    let browser = &mut visit.browser;
    browser.reset(&Viewer::default()).await?;
    browser.open(&link).await?;
    tab_to_and_follow(browser, "nav a[href='/console/conversations']").await?;
    press_on(browser, "#filters-button", "Space").await?;
    press_on(browser, "#filter-form [name=charge][value=disputed]", "Space").await?;
    press_on(browser, "#apply", "Enter").await?;
    browser.wait_for(IS_FILTERED).await?;
    let count = count_of_result(browser).await?;

    browser.press("j").await?;
    browser.press_and_follow("Enter").await?;
    ensure!(browser.has(".verdict .disputed").await?, "not a disputed conversation");
    browser.press("e").await?;
    let is_shown: bool = browser
        .evaluate("document.activeElement.matches('.transcript .ref:focus-visible') && getComputedStyle(document.activeElement).outlineStyle !== 'none'")
        .await?;
    ensure!(is_shown, "no quote, or its focus cannot be seen");

    browser.run("document.activeElement.blur()").await?;
    tab_to_and_follow(browser, "#back").await?;
    tab_to_and_follow(browser, "#export").await?;
    tab_to_and_follow(browser, "#new button[type=submit]").await?;
    until_complete(browser).await?;
    press_on(browser, "#h-list ~ table tbody tr:first-child a.btn", "Enter").await?;
    expect_rows(&browser.downloaded().await?, count)
}

/// The same with the mouse and without scripts; then the forms for agents, for keys and for signing out. The rules
/// `webhooks` and `sessions` check the other forms.
pub async fn without_scripts(visit: &mut Visit) -> Result<()> {
    let link = visit.sign_in_link().await?;
    let browser = &mut visit.browser;
    browser.reset(&Viewer { scripts: false, ..Viewer::default() }).await?;
    browser.open(&link).await?;
    overview(browser).await.context("overview")?;
    let count = list(browser).await.context("list")?;
    conversation(browser).await.context("conversation")?;
    browser.follow("#back").await?;
    browser.follow("#export").await?;
    browser.follow("#new button[type=submit]").await?;
    until_complete(browser).await?;
    expect_rows(&browser.download("#h-list ~ table tbody tr:first-child a.btn").await?, count)?;
    register_agent(browser).await.context("agents")?;
    create_and_revoke_key(visit).await.context("keys")?;
    visit.browser.follow("form.who button").await?;
    visit.browser.expect_address("/console/sign-in").await
}

/// The rule `charts` checks what the charts show without scripts.
async fn overview(browser: &mut Browser) -> Result<()> {
    browser.click(".trend details summary").await?;
    ensure!(browser.has(".trend details[open] table").await?, "the table of the chart does not open");
    browser.follow("nav[aria-label=Period] a[href*='period=all']").await?;
    browser.expect_in_address(&["period=all"]).await?;
    browser.follow("nav[aria-label='Break down by'] a[href*='by=language']").await?;
    browser.expect_text("#h-by", "By language").await?;
    browser.follow("footer a[href*='to=dark']").await?;
    let theme: Vec<String> = browser.all("html", "it.dataset.theme").await?;
    ensure!(theme == ["dark"], "{theme:?}");
    browser.follow("nav a[href='/console/conversations']").await
}

/// Filters the list by a form; returns how many rows match.
async fn list(browser: &mut Browser) -> Result<usize> {
    browser.follow("#sort-axis").await?;
    browser.follow("#next-page").await?;
    browser.follow("#first-page").await?;
    browser.click("#columns-button").await?;
    browser.click("#columns input[value=language]").await?;
    browser.follow("#columns button[type=submit]").await?;
    ensure!(browser.has("#rows td[data-label=Language]").await?, "the column is not shown");
    browser.click("#filters-button").await?;
    browser.click("#filter-form [name=charge][value=disputed]").await?;
    browser.click("#filter-form [name=band][value=poor]").await?;
    browser.follow("#apply").await?;
    browser.follow(".chip a[href*='charge=disputed']").await?;
    count_of_result(browser).await
}

async fn conversation(browser: &mut Browser) -> Result<()> {
    browser.follow("#rows tbody .subject a").await?;
    browser.click(".verdict .ref").await?;
    let address = browser.address().await?;
    let quote = address.split_once('#').context("a quote has no fragment")?.1.to_owned();
    let is_shown = browser.is_in_sight("document.querySelector(':target')").await?;
    ensure!(is_shown, "#{quote} is not on the screen");
    browser.click(&format!(".transcript [id='{quote}']")).await?;
    ensure!(browser.has(".verdict :target").await?, "the quote does not lead to its reason");
    browser.follow("#next").await?;
    browser.follow("#previous").await?;
    ensure!(browser.has("[data-copy-text][hidden]").await?, "a button that needs scripts is shown");
    browser.follow("#help-link").await?;
    ensure!(browser.has("#keys").await?, "no help");
    browser.back().await
}

/// An agent is registered, and refused a second time.
async fn register_agent(browser: &mut Browser) -> Result<()> {
    browser.follow("nav a[href='/console/agents']").await?;
    for fault in [None, Some("is taken by another agent")] {
        browser.fill("#external_id", "night-bot").await?;
        browser.fill("#name", "Night bot").await?;
        browser.follow("#new button[type=submit]").await?;
        match fault {
            None => ensure!(browser.has("#done").await?, "no confirmation"),
            Some(text) => {
                let shown = browser.text("#external_id-fault").await?;
                ensure!(shown.contains(text), "{shown}");
                let kept: Vec<String> = browser.all("#new input:not([type=hidden])", "it.value").await?;
                ensure!(kept == ["night-bot", "Night bot"], "{kept:?}");
            }
        }
    }
    let ids: Vec<String> = browser.all("tbody td:nth-child(2)", "it.textContent").await?;
    ensure!(ids.iter().filter(|id| *id == "night-bot").count() == 1, "{ids:?}");
    browser.expect_only_page_errors("status of 400").await
}

/// A key is made, shown once and revoked.
async fn create_and_revoke_key(visit: &mut Visit) -> Result<()> {
    let browser = &mut visit.browser;
    browser.follow("nav a[href='/console/keys']").await?;
    browser.fill("#name", "nightly import").await?;
    browser.follow("#new button[type=submit]").await?;
    let key = browser.text("#new-key").await?;
    let api = visit.stack.api_with(Some(&key))?;
    api.get("/v1/evaluations/exports").await?.expect_status(200)?;
    browser.open("/console/keys").await?;
    browser.expect_absent(&key).await?;
    browser.click("tbody tr:first-child summary").await?;
    browser.follow("tbody tr:first-child button").await?;
    until("the revoked key is refused", async || {
        Ok((api.get("/v1/evaluations/exports").await?.status == 401).then_some(()))
    })
    .await
}

/// How many conversations the list says it has.
async fn count_of_result(browser: &mut Browser) -> Result<usize> {
    let summary = browser.text("#summary").await?;
    summary.split(' ').next().unwrap_or_default().parse().context(summary)
}

fn expect_rows(file: &[u8], count: usize) -> Result<()> {
    let rows = Table::read(file)?.rows.len();
    ensure!(rows == count, "the list has {count} rows, the file {rows}");
    Ok(())
}

/// Reloads the page of exports until the newest one has a file.
async fn until_complete(browser: &mut Browser) -> Result<()> {
    until("the export is complete", async || {
        browser.open("/console/exports").await?;
        Ok(browser.has("#h-list ~ table tbody tr:first-child a.btn").await?.then_some(()))
    })
    .await
}

/// Presses Tab until the focus is on the element.
async fn tab_to(browser: &mut Browser, selector: &str) -> Result<()> {
    let selector_text = serde_json::to_string(selector)?;
    for _ in 0..MAX_TABS {
        browser.press("Tab").await?;
        if browser.evaluate(&format!("document.activeElement.matches({selector_text})")).await? {
            return Ok(());
        }
    }
    bail!("{selector} cannot be reached by pressing Tab {MAX_TABS} times")
}

/// Moves the focus to an element by Tab, and presses a key there.
async fn press_on(browser: &mut Browser, selector: &str, key: &str) -> Result<()> {
    tab_to(browser, selector).await?;
    browser.press(key).await
}

/// Moves the focus to a link or a button by Tab, and follows it.
async fn tab_to_and_follow(browser: &mut Browser, selector: &str) -> Result<()> {
    tab_to(browser, selector).await?;
    browser.press_and_follow("Enter").await
}
