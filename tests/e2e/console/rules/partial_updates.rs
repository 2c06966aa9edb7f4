//! With scripts, focus stays where it was after a partial update, and a status says what changed.

use anyhow::{Context, Result, ensure};

use crate::browser::Browser;
use crate::console::visit::Visit;

/// Id of the element with the focus.
const FOCUSED: &str = "document.activeElement?.id ?? ''";

pub async fn run(visit: &mut Visit) -> Result<()> {
    let browser = &mut visit.browser;
    browser.open("/console/conversations?charge=disputed&charge=review&charge=supported").await?;
    browser.run("window.isTheSamePage = true").await?;
    // The element on which Enter is pressed, a part of the status afterwards, and the id of the element with the focus.
    let steps = [
        ("#sort-axis", "rows 1 to 25, by AXIS, ascending", Some("sort-axis")),
        ("#sort-time", "rows 1 to 25, by Time, descending", Some("sort-time")),
        ("#next-page", "rows 26 to ", None),
        ("#first-page", "rows 1 to 25, by Time", None),
        (".chip a", "conversations, rows 1 to 25", None),
    ];
    for (selector, status, focused) in steps {
        update(browser, selector, status, focused).await.with_context(|| selector.to_owned())?;
        let scrolled: f64 = browser.evaluate("scrollY").await?;
        ensure!(
            !selector.ends_with("-page") || scrolled == 0.0,
            "{selector}: the new rows are scrolled away"
        );
    }
    columns(browser).await.context("columns")?;
    search(browser).await?;
    too_long_is_said(browser).await.context("a filter that is too long")?;
    failure_is_seen(browser).await
}

/// A filter that is too long for an address stays in its field, and the status says so.
async fn too_long_is_said(browser: &mut Browser) -> Result<()> {
    browser.run("document.querySelector('#search').value = 'x'.repeat(9000)").await?;
    browser.click("#search-button").await?;
    browser
        .wait_for("document.querySelector('#status').textContent.includes('leave some values out')")
        .await?;
    let length: usize = browser.evaluate("document.querySelector('#search').value.length").await?;
    ensure!(length == 9_000, "{length} characters are left");
    browser.run("document.querySelector('#search').value = ''").await?;
    let page_errors = browser.take_page_errors().await?;
    let is_refusal = |text: &String| text.contains("414") || text.contains("htmx:");
    ensure!(page_errors.iter().all(is_refusal), "{page_errors:?}");
    // The next update takes the failure out of sight.
    browser.click("#search-button").await?;
    expect_status(browser, "conversations").await
}

/// An update that fails says so in sight; the next one that works removes it.
async fn failure_is_seen(browser: &mut Browser) -> Result<()> {
    let is_seen = "document.querySelector('#status').getBoundingClientRect().height > 10";
    ensure!(!browser.evaluate::<bool>(is_seen).await?, "a status is in sight although nothing failed");
    browser.run("void (window.send = XMLHttpRequest.prototype.send)").await?;
    let fail = "void (XMLHttpRequest.prototype.send = function () { \
                setTimeout(() => this.dispatchEvent(new ProgressEvent('error'))); })";
    browser.run(fail).await?;
    browser.click("#sort-axis").await?;
    browser
        .wait_for(&format!(
            "document.querySelector('#status').textContent.startsWith('Assay cannot be reached') && {is_seen}"
        ))
        .await?;
    browser.run("void (XMLHttpRequest.prototype.send = window.send)").await?;
    browser.click("#sort-axis").await?;
    expect_status(browser, "by AXIS").await?;
    ensure!(!browser.evaluate::<bool>(is_seen).await?, "the failure is still in sight");
    // htmx reports what failed.
    browser.expect_only_page_errors("htmx:").await
}

/// The menu of columns closes, and its button has the focus.
async fn columns(browser: &mut Browser) -> Result<()> {
    browser.click("#columns-button").await?;
    browser.click("#columns [value=language]").await?;
    browser.run("document.querySelector('#status').textContent = ''").await?;
    browser.click("#columns-apply").await?;
    expect_status(browser, "rows 1 to 25").await?;
    let focus: String = browser.evaluate(FOCUSED).await?;
    ensure!(focus == "columns-button", "the focus is on #{focus}");
    browser.expect_in_address(&["column=language"]).await
}

async fn update(browser: &mut Browser, selector: &str, status: &str, focused: Option<&str>) -> Result<()> {
    let selector_text = serde_json::to_string(selector)?;
    let address_before = browser.address().await?;
    browser
        .run(&format!(
            "document.querySelector('#status').textContent = ''; document.querySelector({selector_text}).focus()"
        ))
        .await?;
    browser.press("Enter").await?;
    expect_status(browser, status).await?;
    ensure!(browser.address().await? != address_before, "the address is still {address_before}");
    let focus: String = browser.evaluate(FOCUSED).await?;
    match focused {
        Some(id) => ensure!(focus == id, "the focus is on #{focus}"),
        None => ensure!(!focus.is_empty(), "the focus is lost: it is on the page"),
    }
    let is_seen: bool = browser.evaluate("document.activeElement.checkVisibility()").await?;
    ensure!(is_seen, "the focus is on something invisible: #{focus}");
    Ok(())
}

/// Waits until the status has the list's summary and `part`; the document must be the same.
async fn expect_status(browser: &mut Browser, part: &str) -> Result<()> {
    let status = "document.querySelector('#status').textContent";
    browser
        .wait_for(&format!(
            "{status} !== '' && {status}.startsWith(document.querySelector('#summary').textContent)"
        ))
        .await?;
    let text: String = browser.evaluate(status).await?;
    ensure!(text.contains(part), "the status is \"{text}\", without \"{part}\"");
    let role: Vec<String> = browser.all("#status", "it.getAttribute('role')").await?;
    ensure!(role == ["status"], "{role:?}");
    let is_same: bool = browser.evaluate("window.isTheSamePage === true").await?;
    ensure!(is_same, "the whole page was loaded again");
    Ok(())
}

/// A search keeps what was typed and the focus in its field.
async fn search(browser: &mut Browser) -> Result<()> {
    browser.run("document.querySelector('#status').textContent = ''").await?;
    browser.fill("#search", "order").await?;
    browser.press("Enter").await?;
    expect_status(browser, "match the filter").await?;
    let state: (String, String) =
        browser.evaluate("[document.activeElement.id, document.activeElement.value]").await?;
    ensure!(state == ("search".to_owned(), "order".to_owned()), "{state:?}");
    Ok(())
}
