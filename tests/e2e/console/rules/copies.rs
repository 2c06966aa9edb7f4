//! The buttons of a conversation copy its address and its id.

use anyhow::{Result, ensure};

use crate::console::pages::first_id;
use crate::console::visit::Visit;

/// Takes the place of the clipboard, which a browser without a window may refuse.
const CLIPBOARD: &str = "void (navigator.clipboard.writeText = async (text) => { window.copied = text; })";

pub async fn run(visit: &mut Visit) -> Result<()> {
    let id = first_id(visit, "charge=disputed").await?;
    let path = format!("/console/conversations/{id}");
    let address = format!("{}{path}", visit.stack.base_url());
    let browser = &mut visit.browser;
    browser.open(&format!("{path}?charge=disputed")).await?;
    browser.run(CLIPBOARD).await?;
    for text in [&address, &id] {
        browser.click(&format!("[data-copy-text='{text}']")).await?;
        browser.wait_for("document.querySelector('#status').textContent === 'Copied'").await?;
        let copied: String = browser.evaluate("window.copied").await?;
        ensure!(copied == *text, "{copied} is copied in place of {text}");
        browser.run("document.querySelector('#status').textContent = ''").await?;
    }
    Ok(())
}
