//! From signing in to the exported file: by keyboard alone, and without scripts.

use anyhow::{Context, Result, bail, ensure};

use crate::browser::Viewer;
use crate::console::visit::Visit;
use crate::harness::{Table, until};

/// Maximum number of Tab presses to reach an element.
const MAX_TABS: usize = 160;

/// By keyboard alone: sign in, overview, a filter, a disputed conversation, its quote, the export of the result, its file.
pub async fn by_keyboard(visit: &mut Visit) -> Result<()> {
    let link = visit.sign_in_link().await?;
    let browser = &mut visit.browser;
    browser.reset(&Viewer::default()).await?;
    browser.open(&link).await?;
    go(visit, "nav a[href='/console/conversations']").await?;
    tab_to(visit, "#filters-button").await?;
    visit.browser.press("Space").await?;
    tab_to(visit, "#filter-form [name=charge][value=disputed]").await?;
    visit.browser.press("Space").await?;
    tab_to(visit, "#apply").await?;
    visit.browser.press("Enter").await?;
    visit.browser.wait_for("location.search.includes('charge=disputed') && document.querySelector('#status').textContent !== ''").await?;
    let summary = visit.browser.text("#summary").await?;
    let count: usize = summary.split(' ').next().unwrap_or_default().parse().context(summary)?;

    visit.browser.press("j").await?;
    visit.browser.press_and_follow("Enter").await?;
    ensure!(visit.browser.has(".verdict .disputed").await?, "not a disputed conversation");
    visit.browser.press("e").await?;
    let is_shown: bool = visit
        .browser
        .evaluate("document.activeElement.matches('.transcript .ref:focus-visible') && getComputedStyle(document.activeElement).outlineStyle !== 'none'")
        .await?;
    ensure!(is_shown, "no quote, or its focus cannot be seen");

    visit.browser.run("document.activeElement.blur()").await?;
    go(visit, "#back").await?;
    go(visit, "#export").await?;
    tab_to(visit, "#new button[type=submit]").await?;
    visit.browser.press_and_follow("Enter").await?;
    until_complete(visit).await?;
    tab_to(visit, "#h-list ~ table tbody tr:first-child a.btn").await?;
    visit.browser.press("Enter").await?;
    let file = visit.browser.downloaded().await?;
    let rows = Table::read(&file)?.rows.len();
    ensure!(rows == count, "the list has {count} rows, the file {rows}");
    Ok(())
}

/// The same with the mouse and without scripts; then the forms for keys, for a webhook and for signing out. The rules `webhooks` and
/// `sessions` check the other forms.
pub async fn without_scripts(visit: &mut Visit) -> Result<()> {
    let link = visit.sign_in_link().await?;
    let viewer = Viewer { scripts: false, ..Viewer::default() };
    visit.browser.reset(&viewer).await?;
    visit.browser.open(&link).await?;
    overview(visit).await.context("overview")?;
    let count = list(visit).await.context("list")?;
    conversation(visit).await.context("conversation")?;
    let browser = &mut visit.browser;
    browser.follow("#back").await?;
    browser.follow("#export").await?;
    browser.follow("#new button[type=submit]").await?;
    until_complete(visit).await?;
    let file = visit.browser.download("#h-list ~ table tbody tr:first-child a.btn").await?;
    let rows = Table::read(&file)?.rows.len();
    ensure!(rows == count, "the list has {count} rows, the file {rows}");
    management(visit).await.context("management")
}

async fn overview(visit: &mut Visit) -> Result<()> {
    let browser = &mut visit.browser;
    // Charts are drawn by the server; their tables open without scripts.
    let drawn: Vec<bool> = browser
        .all(".trend .plot svg", "it.checkVisibility() && it.querySelector('polyline') !== null")
        .await?;
    ensure!(drawn == [true; 4], "{drawn:?}");
    browser.click(".trend details summary").await?;
    ensure!(browser.has(".trend details[open] table").await?, "the table of the chart does not open");
    browser.follow("nav[aria-label=Period] a[href*='period=all']").await?;
    ensure!(browser.address().await?.contains("period=all"), "{}", browser.address().await?);
    browser.follow("nav[aria-label='Break down by'] a[href*='by=language']").await?;
    ensure!(browser.text("#h-by").await? == "By language", "{}", browser.text("#h-by").await?);
    browser.follow("footer a[href*='to=dark']").await?;
    let theme: Vec<String> = browser.all("html", "it.dataset.theme").await?;
    ensure!(theme == ["dark"], "{theme:?}");
    browser.follow("nav a[href='/console/conversations']").await
}

/// Filters the list by a form; returns how many rows match.
async fn list(visit: &mut Visit) -> Result<usize> {
    let browser = &mut visit.browser;
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
    let summary = browser.text("#summary").await?;
    summary.split(' ').next().unwrap_or_default().parse().context(summary)
}

async fn conversation(visit: &mut Visit) -> Result<()> {
    let browser = &mut visit.browser;
    browser.follow("#rows tbody .subject a").await?;
    browser.click(".verdict .ref").await?;
    let address = browser.address().await?;
    let quote = address.split_once('#').context("a quote has no fragment")?.1.to_owned();
    let is_shown: bool = browser
        .evaluate("(() => { const box = document.querySelector(':target').getBoundingClientRect(); return box.top >= 0 && box.bottom <= innerHeight })()")
        .await?;
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

/// An agent is registered, and refused a second time; a key is made, shown once and revoked; a webhook is made, tested and deleted;
/// the session is ended.
async fn management(visit: &mut Visit) -> Result<()> {
    register_agent(visit).await.context("agents")?;
    let browser = &mut visit.browser;
    browser.follow("nav a[href='/console/keys']").await?;
    browser.click("#name").await?;
    browser.type_text("nightly import").await?;
    browser.follow("#new button[type=submit]").await?;
    let key = browser.text("#new-key").await?;
    let api = visit.stack.api_with(Some(&key))?;
    api.get("/v1/evaluations/exports").await?.expect_status(200)?;
    browser.open("/console/keys").await?;
    ensure!(
        !browser.evaluate::<bool>(&format!("document.documentElement.outerHTML.includes('{key}')")).await?,
        "the key is shown again"
    );
    browser.click("tbody tr:first-child summary").await?;
    browser.follow("tbody tr:first-child button").await?;
    until("the revoked key is refused", async || {
        Ok((api.get("/v1/evaluations/exports").await?.status == 401).then_some(()))
    })
    .await?;

    let browser = &mut visit.browser;
    browser.follow("nav a[href='/console/webhooks']").await?;
    browser.click("#url").await?;
    browser.type_text("http://127.0.0.1:1024/hook").await?;
    browser.click("#new [name=events][value='resolution.disputed']").await?;
    browser.follow("#new button[type=submit]").await?;
    ensure!(browser.text("#new-secret").await?.starts_with("whsec_"), "no secret");
    browser.open("/console/webhooks").await?;
    browser.follow("tbody tr:first-child a.q").await?;
    browser.follow("#actions [value=test]").await?;
    ensure!(browser.has("tr[id^=delivery-]").await?, "no message");
    browser.click("details.block summary").await?;
    browser.follow("#delete button").await?;
    browser.follow("form.who button").await?;
    ensure!(browser.address().await? == "/console/sign-in", "{}", browser.address().await?);
    Ok(())
}

/// Reloads the page of exports until the newest one has a file.
async fn until_complete(visit: &mut Visit) -> Result<()> {
    let browser = &mut visit.browser;
    until("the export is complete", async || {
        browser.open("/console/exports").await?;
        Ok(browser.has("#h-list ~ table tbody tr:first-child a.btn").await?.then_some(()))
    })
    .await
}

/// Presses Tab until the focus is on the element.
async fn tab_to(visit: &mut Visit, selector: &str) -> Result<()> {
    let selector_text = serde_json::to_string(selector)?;
    for _ in 0..MAX_TABS {
        visit.browser.press("Tab").await?;
        if visit.browser.evaluate(&format!("document.activeElement.matches({selector_text})")).await? {
            return Ok(());
        }
    }
    bail!("{selector} cannot be reached by pressing Tab {MAX_TABS} times")
}

/// Moves the focus to a link by Tab, and follows it.
async fn go(visit: &mut Visit, selector: &str) -> Result<()> {
    tab_to(visit, selector).await?;
    visit.browser.press_and_follow("Enter").await
}

async fn register_agent(visit: &mut Visit) -> Result<()> {
    let browser = &mut visit.browser;
    browser.follow("nav a[href='/console/agents']").await?;
    for fault in [None, Some("is taken by another agent")] {
        browser.click("#external_id").await?;
        browser.type_text("night-bot").await?;
        browser.click("#name").await?;
        browser.type_text("Night bot").await?;
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
