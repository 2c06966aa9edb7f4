//! With scripts, focus stays where it was after a partial update, and a status says what changed.

use anyhow::{Context, Result, ensure};

use crate::console::visit::Visit;

/// Id of the element with the focus.
const FOCUSED: &str = "document.activeElement?.id ?? ''";

pub async fn run(visit: &mut Visit) -> Result<()> {
    let browser = &mut visit.browser;
    browser.open("/console/conversations?charge=disputed&charge=review&charge=supported").await?;
    browser.evaluate::<serde_json::Value>("window.isTheSamePage = true").await?;
    // The element with the focus, the key that changes the list, and the id of the element with the focus afterwards.
    let steps = [
        ("#sort-axis", "Enter", Some("sort-axis")),
        ("#sort-time", "Enter", Some("sort-time")),
        ("#next-page", "Enter", None),
        ("#first-page", "Enter", None),
        (".chip a", "Enter", None),
    ];
    for (selector, key, focused) in steps {
        update(visit, selector, key, focused).await.with_context(|| selector.to_owned())?;
    }
    search(visit).await
}

async fn update(visit: &mut Visit, selector: &str, key: &str, focused: Option<&str>) -> Result<()> {
    let browser = &mut visit.browser;
    let selector_text = serde_json::to_string(selector)?;
    let before = browser.address().await?;
    browser
        .evaluate::<serde_json::Value>(&format!(
            "document.querySelector('#status').textContent = ''; document.querySelector({selector_text}).focus()"
        ))
        .await?;
    browser.press(key).await?;
    expect_status(visit).await?;
    let browser = &mut visit.browser;
    ensure!(browser.address().await? != before, "the address is still {before}");
    let now: String = browser.evaluate(FOCUSED).await?;
    match focused {
        Some(id) => ensure!(now == id, "the focus is on #{now}"),
        None => ensure!(!now.is_empty(), "the focus is lost: it is on the page"),
    }
    let is_seen: bool = browser.evaluate("document.activeElement.checkVisibility()").await?;
    ensure!(is_seen, "the focus is on something invisible: #{now}");
    Ok(())
}

/// Waits until the status has the text of the list's summary; the document must be the same.
async fn expect_status(visit: &mut Visit) -> Result<()> {
    let browser = &mut visit.browser;
    browser
        .wait_for("document.querySelector('#status').textContent !== '' && document.querySelector('#status').textContent === document.querySelector('#summary').textContent")
        .await?;
    let role: Vec<String> = browser.all("#status", "it.getAttribute('role')").await?;
    ensure!(role == ["status"], "{role:?}");
    let is_same: bool = browser.evaluate("window.isTheSamePage === true").await?;
    ensure!(is_same, "the whole page was loaded again");
    Ok(())
}

/// A search keeps what was typed and the focus in its field.
async fn search(visit: &mut Visit) -> Result<()> {
    let browser = &mut visit.browser;
    browser.evaluate::<serde_json::Value>("document.querySelector('#status').textContent = ''").await?;
    browser.click("#search").await?;
    browser.type_text("order").await?;
    browser.press("Enter").await?;
    expect_status(visit).await?;
    let browser = &mut visit.browser;
    let state: (String, String) =
        browser.evaluate("[document.activeElement.id, document.activeElement.value]").await?;
    ensure!(state == ("search".to_owned(), "order".to_owned()), "{state:?}");
    Ok(())
}
