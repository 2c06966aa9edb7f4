//! The browser's storage keeps nothing of a transcript: htmx's cache of pages, which is on by default, is off.

use anyhow::{Context, Result, ensure};

use crate::browser::Browser;
use crate::console::visit::{IS_FILTERED, Visit};

/// Names and values in the storage, shortened. htmx stores the address of the current page whatever its settings are; the
/// browser's history has it, too.
const STORED: &str = r"[localStorage, sessionStorage].flatMap((it) => Object.entries(it))
  .filter(([name, value]) => !(name === 'htmx-current-path-for-history' && new URL(value, location).href === location.href))
  .map(([name, value]) => `${name}: ${value.slice(0, 200)}`)";

/// From the list to a conversation and back, by partial updates and by the history.
pub async fn run(visit: &mut Visit) -> Result<()> {
    let browser = &mut visit.browser;
    browser.open("/console/conversations").await?;
    expect_nothing_stored(browser).await.context("list")?;
    filter(browser).await?;
    expect_nothing_stored(browser).await.context("filtered list")?;

    browser.follow("#rows tbody .subject a").await?;
    ensure!(browser.has(".transcript .said").await?, "no transcript");
    expect_nothing_stored(browser).await.context("conversation")?;

    browser.back().await?;
    ensure!(browser.has(".chip").await?, "not the filtered list");
    expect_nothing_stored(browser).await.context("back in the filtered list")?;
    browser.back().await?;
    // htmx loads the page again, because its cache is off.
    browser
        .wait_for("document.querySelector('.chip') === null && document.readyState === 'complete'")
        .await?;
    expect_nothing_stored(browser).await.context("back in the list")?;
    expect_stored_pages_are_found(browser).await
}

async fn expect_nothing_stored(browser: &mut Browser) -> Result<()> {
    let stored: Vec<String> = browser.evaluate(STORED).await?;
    ensure!(stored.is_empty(), "stored: {stored:?}");
    Ok(())
}

/// Filters the list by a partial update.
async fn filter(browser: &mut Browser) -> Result<()> {
    browser.run("window.isTheSamePage = true").await?;
    browser.click("#filters-button").await?;
    browser.click("#filter-form [name=charge][value=disputed]").await?;
    browser.click("#apply").await?;
    browser.wait_for(IS_FILTERED).await?;
    let is_same: bool = browser.evaluate("window.isTheSamePage === true").await?;
    ensure!(is_same, "the whole page was loaded again");
    Ok(())
}

/// With htmx's cache on, the same walk finds a stored page.
async fn expect_stored_pages_are_found(browser: &mut Browser) -> Result<()> {
    browser.open("/console/conversations").await?;
    browser.run("htmx.config.historyCacheSize = 1").await?;
    filter(browser).await?;
    let stored: Vec<String> = browser.evaluate(STORED).await?;
    ensure!(stored.iter().any(|text| text.starts_with("htmx-history-cache: ")), "only found {stored:?}");
    Ok(())
}
